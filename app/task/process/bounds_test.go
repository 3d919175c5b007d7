package process

import (
	"os"
	"os/exec"
	"testing"

	"molrun/app/test/must"
)

func TestOnlyTheVeryProcessRuns(t *testing.T) {
	self, err := Find(os.Getpid())
	must.OK(t, err)
	later, otherBoot, gone := self, self, self
	later.StartTime++
	otherBoot.BootID = "other"
	gone.PID = 1 << 30
	for name, tt := range map[string]struct {
		id   ID
		want bool
	}{
		"itself": {self, true}, "one that has its PID now": {later, false}, "of another boot": {otherBoot, false}, "gone": {gone, false},
	} {
		if got := tt.id.running(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestUsageOfChildrenIsCounted(t *testing.T) {
	before := ChildrenSeconds()
	script := `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if after := ChildrenSeconds(); after <= before {
		t.Errorf("%g s after a child that computed, %g s before", after, before)
	}
}
