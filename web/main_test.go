package web_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"molrun/app/test/contract"
	"molrun/web"
)

// described checks every request and response of these tests against openapi.yaml.
var described = func() *contract.Checker {
	c, err := contract.New(web.OpenAPI())
	if err != nil {
		panic(err)
	}
	return c
}()

// TestMain requires that all tests together cover every status of every operation.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && everythingRan() {
		if unmet := described.Unmet(func(contract.Operation, string) bool { return false }); len(unmet) > 0 {
			fmt.Printf("no test met these answers of openapi.yaml:\n\t%s\n", strings.Join(unmet, "\n\t"))
			code = 1
		}
	}
	os.Exit(code)
}

func everythingRan() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}
