package gpu

import (
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/app/test/smi"
)

// TestOneProcessAtATime simulates an earlier process that can't be killed.
func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	stuck := &tool{path: smi.New(t).Program, bound: time.Minute, child: make(chan struct{})}
	_, err := stuck.run(t.Context(), "-L")
	must.Fail(t, "while it runs", err, "an earlier nvidia-smi process can't be killed")
	close(stuck.child)
	_, err = stuck.run(t.Context(), "-L")
	must.OK(t, err)
}
