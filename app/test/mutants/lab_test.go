package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMutantsAreKilledUnlessTheTestsAreWeak plants every mutant of a module made
// for this test.
func TestMutantsAreKilledUnlessTheTestsAreWeak(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.26\n",
		"larger/larger.go": `package larger

func Larger(a, b int) int {
	if a >= b {
		return a
	}
	return b
}

func Next(n int) int {
	n += 1
	return n
}
`,
		"larger/larger_test.go": `package larger

import "testing"

func TestLarger(t *testing.T) {
	if Larger(1, 2) != 2 || Larger(2, 1) != 2 {
		t.Fail()
	}
}

func TestNext(t *testing.T) {
	if Next(3) != 4 {
		t.Fail()
	}
}
`,
	} {
		if err := os.MkdirAll(filepath.Join(dir, "larger"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	var table strings.Builder
	o := options{Lines: 1, Min: 1, Max: 100, Seed: "1", Budget: time.Minute, Slowest: time.Minute, Patterns: []string{"./..."}}
	for range 2 { // the second run remembers all but the survivor
		table.Reset()
		if err := run(t.Context(), o, &table, io.Discard); err != nil {
			t.Fatal(err)
		}
		if got := table.String(); !strings.Contains(got, "if a >= b { => if a > b {") || strings.Count(got, "survived at") != 1 {
			t.Errorf("want one survivor, the boundary that makes no difference:\n%s", got)
		}
	}
	if source, err := os.ReadFile("larger/larger.go"); err != nil || !strings.Contains(string(source), "a >= b") {
		t.Errorf("the source has changed: %s %v", source, err)
	}
}
