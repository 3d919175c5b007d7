package local

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"molrun/app/task/process"
	"molrun/app/test/must"
)

func TestCoresOfThisMachine(t *testing.T) {
	allowed, err := process.AllowedCPUs()
	must.OK(t, err)
	cores, why := Cores(1)
	all := slices.Concat(cores...)
	if slices.Sort(all); runtime.GOMAXPROCS(0) >= len(allowed) && (why != "" || !slices.Equal(all, allowed)) {
		t.Errorf("cores %v, %q; allowed are the CPUs %v", cores, why, allowed)
	}
	if cores, why := Cores(len(allowed) + 1); cores != nil || !strings.Contains(why, "runner.cpus is") {
		t.Errorf("more CPUs than there are: %v, %q", cores, why)
	}
}

func TestThreadsOfOneCore(t *testing.T) {
	dir := t.TempDir()
	for cpu, siblings := range []string{"0,4", "1,5", "", "3", "0,4", "1,5"} {
		if siblings == "" {
			continue // unknown core
		}
		must.Write(t, filepath.Join(dir, fmt.Sprint("cpu", cpu), "topology", "thread_siblings_list"), siblings+"\n")
	}
	must.Equal(t, "cores", fmt.Sprint(coresOf([]int{0, 1, 2, 3, 4, 5, 7}, dir)), "[[0 4] [1 5] [2] [3] [7]]")
}
