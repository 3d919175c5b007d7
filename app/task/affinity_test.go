package task

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// TestProgramsArePinned runs a program on one CPU, in a sandbox if possible.
func TestProgramsArePinned(t *testing.T) {
	t.Parallel()
	allowed, err := process.AllowedCPUs()
	if err != nil || len(allowed) == 0 {
		t.Fatal(allowed, err)
	}
	last := allowed[len(allowed)-1]
	a := newAttempt(t, "unset OMP_NUM_THREADS; nproc; grep Cpus_allowed_list /proc/self/status; sh -c 'sh -c nproc'")
	a.spec.CPUSet = []int{last}
	a.start().ends(protocol.CauseDone)
	if got, want := strings.Join(strings.Fields(a.read(LogFile)), " "), fmt.Sprintf("1 Cpus_allowed_list: %d 1", last); got != want {
		t.Errorf("the program saw %q, want %q", got, want)
	}
	free := newAttempt(t, "unset OMP_NUM_THREADS; nproc")
	if free.start().outcome(); strings.TrimSpace(free.read(LogFile)) != fmt.Sprint(len(allowed)) {
		t.Errorf("without pinning: %s of %d", free.read(LogFile), len(allowed))
	}
}

// TestAbsentCPUsAreNoFailure pins a task to a CPU that no longer exists.
func TestAbsentCPUsAreNoFailure(t *testing.T) {
	t.Parallel()
	for _, cpu := range []int{8191, 1 << 20, -1} {
		a := newAttempt(t, "true")
		a.spec.CPUSet = []int{cpu}
		if o := a.start().outcome(); o.Cause != protocol.CauseDone || !strings.Contains(a.read("shim.log"), fmt.Sprint(cpu)) {
			t.Errorf("CPU %d: outcome %+v; %s", cpu, o, a.read("shim.log"))
		}
	}
}
