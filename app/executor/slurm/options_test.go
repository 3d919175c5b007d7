package slurm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

func TestOptionsThatWouldBreakAScriptAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		options Options
		fine    bool
	}{
		"the defaults":                   {Options{SharedDir: "/shared"}, true},
		"a prefix of 64 letters":         {Options{SharedDir: "/shared", Prefix: strings.Repeat("a", 64)}, true},
		"a prefix of 65 letters":         {Options{SharedDir: "/shared", Prefix: strings.Repeat("a", 65)}, false},
		"a prefix with a space":          {Options{SharedDir: "/shared", Prefix: "a b"}, false},
		"no folder":                      {Options{}, false},
		"a relative folder":              {Options{SharedDir: "shared"}, false},
		"a folder that is not clean":     {Options{SharedDir: "/shared/"}, false},
		"a folder with a line's end":     {Options{SharedDir: "/a\nb"}, false},
		"a folder with a percent sign":   {Options{SharedDir: "/a%j"}, false},
		"a negative number of tasks":     {Options{SharedDir: "/shared", MaxTasks: -1}, false},
		"a negative time between rounds": {Options{SharedDir: "/shared", Poll: -1}, false},
	} {
		if err := tt.options.withDefaults().valid(); (err == nil) != tt.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTaskWithoutASandboxIsNotSubmitted uses an algorithm whose sandbox can't be
// determined.
func TestTaskWithoutASandboxIsNotSubmitted(t *testing.T) {
	unknown := errors.New("the algorithm is gone")
	e, err := New(Options{SharedDir: t.TempDir(), Path: t.TempDir(), SandboxOf: func(context.Context, app.JobID) (app.Sandbox, error) {
		return app.Sandbox{}, unknown
	}})
	must.OK(t, err)
	defer e.Close()
	if _, err := e.Start(t.Context(), app.Task{Token: "token", Dir: t.TempDir()}); !errors.Is(err, unknown) {
		t.Errorf("the task starts: %v", err)
	}
}
