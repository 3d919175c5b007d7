package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

func TestWholeMachineIsReservedAfterTenMinutes(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	for i := range 3 {
		b.add("bob", fmt.Sprintf("b%d", i), cpus(1))
	}
	b.deep("b0", "b1", "b2")
	b.add("ann", "whole", cpus(4))
	b.add("bob", "b3", cpus(1))
	b.deep("b3") // overtakes the large job
	b.now = b.now.Add(9 * time.Minute)
	b.add("bob", "b4", cpus(1))
	b.end("b0")
	b.deep("b4")
	b.now = b.now.Add(time.Minute)
	b.add("bob", "b5", cpus(1))
	b.end("b1", "b2", "b3")
	d := b.deep()
	if got, want := d.Reasons["whole"], (eta.Reason{Text: "reserved: next to start, waiting for 4 CPUs", By: eta.CPU}); got != want {
		t.Errorf("reason %+v, want %+v", got, want)
	}
	if got := d.Reasons["b5"]; !strings.HasPrefix(got.Text, "free resources are reserved") || got.By != eta.CPU {
		t.Errorf("reason of a job blocked by a reservation: %+v", got)
	}
	b.end("b4")
	b.deep("whole")
	b.end("whole")
	b.deep("b5")
}

func TestReservationLeavesOthersWhatItDoesNotNeed(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"0", "1"}})
	b.add("ann", "0", placement.Resources{CPUs: 1, GPUs: 1})
	b.deep("0")
	b.add("cy", "both", placement.Resources{CPUs: 2, GPUs: 2})
	b.add("bob", "first", cpus(1))
	b.deep("first") // overtakes the job of cy
	b.now = b.now.Add(11 * time.Minute)
	b.add("bob", "gpu", placement.Resources{CPUs: 1, GPUs: 1})
	b.add("bob", "many", cpus(5))
	b.add("bob", "some", cpus(4))
	b.deep("some") // 2 GPUs and 2 CPUs are reserved
}

// passOver returns a board of four CPUs on which ann's job that needs all of them has
// just been passed over by a job of bob, who runs three others.
func passOver(t *testing.T) *board {
	t.Helper()
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("ann", "a0", cpus(1))
	for i := range 3 {
		b.add("bob", fmt.Sprintf("b%d", i), cpus(1))
	}
	b.deep("a0", "b0", "b1", "b2")
	b.add("ann", "whole", cpus(4))
	b.add("bob", "b3", cpus(1))
	b.end("b0")
	b.deep("b3") // overtakes the large job
	return b
}

func TestReservationHoldsIfAShallowScanEndsBeforeIt(t *testing.T) {
	b := passOver(t)
	b.now = b.now.Add(11 * time.Minute)
	b.add("ann", "a1", cpus(1)) // older than the large job, as after a retry
	b.add("bob", "b4", cpus(1))
	for _, id := range []string{"b1", "b2", "b3"} {
		b.end(id)
		b.shallow()
	}
	b.end("a0")
	b.shallow("whole")
}

func TestShallowScanSkipsJobsBlockedByAReservation(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"0"}})
	b.add("ann", "0", placement.Resources{CPUs: 1, GPUs: 1})
	b.deep("0")
	b.add("cy", "device", placement.Resources{CPUs: 4, GPUs: 1})
	b.add("ann", "1", cpus(1))
	b.deep("1") // overtakes the job of cy
	b.now = b.now.Add(11 * time.Minute)
	b.add("bob", "many", cpus(6)) // needs all free CPUs, of which 4 are reserved
	b.add("bob", "some", cpus(2))
	b.shallow("some")
}

func TestRetriedJobStartsWaitingAnew(t *testing.T) {
	b := passOver(t)
	whole := b.queue
	b.queue = nil
	b.now = b.now.Add(9 * time.Minute)
	b.deep()
	b.queue = whole
	b.now = b.now.Add(2 * time.Minute)
	b.add("bob", "b4", cpus(1))
	b.end("b1")
	b.deep("b4") // the large job has not waited long enough
}

func TestHigherPriorityIsNotBoundByReservation(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("bob", "b0", cpus(2))
	b.deep("b0")
	b.add("ann", "whole", cpus(4))
	b.add("bob", "b1", cpus(1))
	b.deep("b1")
	b.now = b.now.Add(time.Hour)
	b.add("cy", "c", cpus(1))
	b.addUrgent("admin", "urgent", 1, cpus(1))
	b.deep("urgent")
}

func TestOnlyOneJobHasAReservation(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("bob", "b0", cpus(2))
	b.deep("b0")
	b.add("ann", "w1", cpus(4))
	b.add("ann", "w2", cpus(4))
	b.add("bob", "b1", cpus(1))
	b.deep("b1")
	b.now = b.now.Add(time.Hour)
	b.end("b0", "b1")
	b.deep("w1")
	b.add("bob", "b2", cpus(1))
	b.end("w1")
	b.deep("w2") // w2 has waited as long
}

func TestReservationGoesByPriorityThenTimeThenID(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 10, minute, 0, 0, time.UTC) }
	passed := func(priority, minute int, id app.JobID) *passedOver {
		return &passedOver{app.Waiting{ID: id, Priority: priority}, at(minute)}
	}
	inOrder := []*passedOver{passed(5, 9, "z"), passed(0, 1, "y"), passed(0, 2, "b"), passed(0, 2, "c"), passed(-5, 0, "a")}
	for i, p := range inOrder {
		for j, q := range inOrder {
			must.Equal(t, fmt.Sprintf("%+v before %+v", p, q), p.before(q), i < j)
		}
	}
}
