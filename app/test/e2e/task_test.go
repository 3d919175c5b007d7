package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTaskStartsBeforeServicePackagesAreInitialized ensures that tasks start quickly,
// because initializing these packages takes longer than starting a task.
func TestTaskStartsBeforeServicePackagesAreInitialized(t *testing.T) {
	c := exec.Command(molrun, "task")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() != exitUsage {
		t.Fatalf("molrun task without a directory: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "init os ") {
		t.Fatalf("no trace of initialization:\n%s", out)
	}
	for _, name := range []string{
		"molrun/app", "github.com/santhosh-tekuri/jsonschema/v6", "github.com/prometheus/client_golang/prometheus",
		"github.com/gin-gonic/gin", "github.com/go-playground/validator/v10", "gonum.org/v1/plot", "regexp", "net/http", "net/netip",
	} {
		if strings.Contains(string(out), "init "+name+" ") {
			t.Errorf("%s was initialized first", name)
		}
	}
}
