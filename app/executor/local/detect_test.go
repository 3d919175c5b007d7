package local_test

import (
	"testing"

	"molrun/app/executor/local"
	"molrun/app/test/must"
)

func TestDetectFindsCPUsAndMemory(t *testing.T) {
	t.Parallel()
	got, err := local.Detect()
	must.OK(t, err)
	if got.CPUs < 1 || got.MemoryBytes < 64<<20 {
		t.Errorf("capacity %+v, want CPUs and memory", got)
	}
}
