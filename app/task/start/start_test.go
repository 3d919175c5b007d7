package start

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTaskThatCannotBeginSaysWhy runs this test program as a task.
func TestTaskThatCannotBeginSaysWhy(t *testing.T) {
	t.Parallel()
	const inside = "MOLRUN_TEST_INSIDE"
	if os.Getenv(inside) != "" {
		t.Skip("it was not taken for a task, and must not start itself again")
	}
	for args, says := range map[string]string{
		"task":              "molrun: task: ",
		"task --nosuch":     "molrun: task: ",
		"task /nosuch/task": "molrun: ",
	} {
		var ended *exec.ExitError
		c := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(args)...)
		c.Env = append(os.Environ(), inside+"=1")
		_, err := c.Output()
		if !errors.As(err, &ended) || ended.ExitCode() <= 0 || !strings.HasPrefix(string(ended.Stderr), says) {
			t.Errorf("%s: %v, want an error with %q", args, err, says)
		}
	}
}
