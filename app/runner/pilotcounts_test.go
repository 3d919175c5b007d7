package runner

import (
	"fmt"
	"testing"

	"molrun/app/runner/schedule"
	"molrun/app/test/must"
)

var (
	myPilots    = pilotKind{"slurm", schedule.User{Organization: "lab", Email: "ann@lab.example"}, "fold"}
	theirPilots = pilotKind{"slurm", schedule.User{Organization: "lab", Email: "bob@lab.example"}, "fold"}
)

// As many pilots wait as run, and at least a few; others of another kind don't count.
func TestPilotsThatWait(t *testing.T) {
	f := newPilotCounts()
	if _, any := f.Capacity(myPilots); any {
		t.Error("a kind without pilots has places")
	}
	entered := 0
	enter := func() {
		for f.Enter(fmt.Sprint(entered), myPilots) {
			if entered++; entered > 100 {
				t.Fatal("any number enters")
			}
		}
	}
	enter()
	must.Equal(t, "enter", entered, maxWaitingPilots)
	if !f.Enter("other", theirPilots) {
		t.Error("another user's pilot can't enter")
	}
	for n := range maxWaitingPilots {
		f.Runs(fmt.Sprint(n))
		f.Runs(fmt.Sprint(n)) // seen again
	}
	if places, any := f.Capacity(myPilots); places != maxWaitingPilots || !any {
		t.Errorf("%d places, %v", places, any)
	}
	enter()
	for n := range entered {
		f.Runs(fmt.Sprint(n))
	}
	enter()
	must.Equal(t, "have entered", entered, 4*maxWaitingPilots)
	f.Add("adopted", myPilots)
	if places, _ := f.Capacity(myPilots); places >= 0 || f.Enter("one more", myPilots) {
		t.Errorf("%d places with one too many", places)
	}
	for n := range entered {
		f.Remove(fmt.Sprint(n))
		f.Remove(fmt.Sprint(n))
	}
	if places, _ := f.Capacity(myPilots); places != maxWaitingPilots-1 || f.Has("0") || !f.Has("adopted") {
		t.Errorf("%d places after they have landed", places)
	}
	f.Remove("adopted")
	if _, any := f.Capacity(myPilots); any || len(f.kinds) != 1 {
		t.Error("what has landed is still counted")
	}
}
