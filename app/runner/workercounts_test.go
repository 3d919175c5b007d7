package runner

import (
	"fmt"
	"testing"

	"molrun/app/runner/schedule"
	"molrun/app/test/must"
)

var (
	myWorkers    = workerKind{"slurm", schedule.User{Organization: "lab", Email: "ann@lab.example"}, "fold"}
	theirWorkers = workerKind{"slurm", schedule.User{Organization: "lab", Email: "bob@lab.example"}, "fold"}
)

// As many workers can wait as run, and at least a few; those of another kind do not count.
func TestWorkersThatWait(t *testing.T) {
	f := newWorkerCounts()
	if _, any := f.Capacity(myWorkers); any {
		t.Error("a kind without workers has capacity")
	}
	entered := 0
	enter := func() {
		for f.Enter(fmt.Sprint(entered), myWorkers) {
			if entered++; entered > 100 {
				t.Fatal("any number enters")
			}
		}
	}
	enter()
	must.Equal(t, "enter", entered, maxWaitingWorkers)
	if !f.Enter("other", theirWorkers) {
		t.Error("another user's worker can't enter")
	}
	for n := range maxWaitingWorkers {
		f.Runs(fmt.Sprint(n))
		f.Runs(fmt.Sprint(n)) // seen again
	}
	if places, any := f.Capacity(myWorkers); places != maxWaitingWorkers || !any {
		t.Errorf("%d places, %v", places, any)
	}
	enter()
	for n := range entered {
		f.Runs(fmt.Sprint(n))
	}
	enter()
	must.Equal(t, "have entered", entered, 4*maxWaitingWorkers)
	f.Add("adopted", myWorkers)
	if places, _ := f.Capacity(myWorkers); places >= 0 || f.Enter("one more", myWorkers) {
		t.Errorf("capacity %d with one too many", places)
	}
	for n := range entered {
		f.Remove(fmt.Sprint(n))
		f.Remove(fmt.Sprint(n))
	}
	if places, _ := f.Capacity(myWorkers); places != maxWaitingWorkers-1 || f.Has("0") || !f.Has("adopted") {
		t.Errorf("capacity %d after the workers have exited", places)
	}
	f.Remove("adopted")
	if _, any := f.Capacity(myWorkers); any || len(f.kinds) != 1 {
		t.Error("an exited worker is still counted")
	}
}
