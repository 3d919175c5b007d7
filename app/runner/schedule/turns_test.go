package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

func TestOneJobOfAnotherUserIsNext(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2})
	for i := range 1000 {
		b.add("ann", fmt.Sprintf("a%04d", i), cpus(1))
	}
	b.deep("a0000", "a0001")
	b.now = b.now.Add(24 * time.Hour) // regardless of how long ann's jobs have waited
	b.deep()
	b.add("bob", "b", cpus(1))
	b.end("a0000")
	b.shallow("b")
}

func TestUsersTakeTurns(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 1})
	for i := range 3 {
		for _, u := range []string{"ann", "bob", "cy"} {
			b.add(u, fmt.Sprintf("%s%d", u, i), cpus(1))
		}
	}
	for _, id := range []string{"ann0", "bob0", "cy0", "ann1", "bob1", "cy1", "ann2", "bob2", "cy2"} {
		b.shallow(id)
		b.end(id)
	}
}

func TestFewestRunningGoesBeforeLeastRecentlyStarted(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 3})
	b.add("ann", "a0", cpus(1))
	b.add("ann", "a1", cpus(1))
	b.deep("a0", "a1")
	b.add("bob", "b0", cpus(1))
	b.deep("b0")
	b.end("b0") // bob was the last to start a job, but has none running
	b.add("ann", "a2", cpus(1))
	b.add("bob", "b1", cpus(1))
	b.deep("b1")
}

func TestSameEmailInTwoOrganizationsIsTwoUsers(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2})
	b.add("ann", "a1", cpus(1))
	b.add("ann", "a2", cpus(1))
	b.add("ann", "z1", cpus(1))
	b.queue[2].Organization = "other"
	b.deep("a1", "z1")
}

func TestHigherPriorityStartsFirst(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2})
	b.add("ann", "a", cpus(1))
	b.addUrgent("bob", "b-low", -3, cpus(1))
	b.addUrgent("cy", "c-high", 5, cpus(1))
	b.deep("c-high", "a")
}

func TestFiveJobsShareTwoDevices(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"GPU-a", "GPU-b"}})
	for i := range 5 {
		b.add("ann", fmt.Sprint(i), placement.Resources{CPUs: 1, GPUs: 1})
	}
	if got, want := b.deep("0", "1").Reasons["2"], eta.NotTurnYet(true); got != want {
		t.Errorf("reason %+v, want %+v", got, want)
	}
	if got, want := b.deep().Reasons["2"], (eta.Reason{Text: "waiting for 1 GPU", By: eta.GPU}); got != want {
		t.Errorf("reason %+v, want %+v", got, want)
	}
	freed := b.runs["1"].GPUs
	b.end("1")
	must.Equal(t, "job 2", b.deep("2").Start[0].GPUs, freed)
	b.end("0", "2")
	b.deep("3", "4")
}

func TestJobThatDoesNotFitIsPassedOver(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4, MemoryBytes: 8 * gib})
	b.add("ann", "1-runs", cpus(2))
	b.add("ann", "2-wide", cpus(3))
	b.add("ann", "3-fat", placement.Resources{CPUs: 1, MemoryBytes: 6 * gib})
	b.add("ann", "4-fat", placement.Resources{CPUs: 1, MemoryBytes: 6 * gib})
	b.deep("1-runs", "3-fat")
	want := map[app.JobID]eta.Reason{"2-wide": {Text: "waiting for 3 CPUs", By: eta.CPU}, "4-fat": {Text: "waiting for 6.0 GiB of memory", By: eta.Memory}}
	must.Equal(t, "reasons", b.deep().Reasons, want)
}

func TestScanIsBoundedForEachUser(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4, GPUs: []string{"0"}})
	b.add("ann", "0", placement.Resources{CPUs: 1, GPUs: 1})
	b.deep("0")
	for i := range 40 {
		b.add("ann", fmt.Sprintf("g%02d", i), placement.Resources{CPUs: 1, GPUs: 1})
	}
	b.add("ann", "late", cpus(1))
	b.add("bob", "b", cpus(1))
	must.Equal(t, "jobs were examined", len(b.deep("b").Reasons), ScanDepth)
}

func TestShallowScanFindsWhatADeepOneWouldStart(t *testing.T) {
	for _, deep := range []bool{false, true} {
		b := newBoard(t, app.Capacity{CPUs: 3})
		for i := range 50 {
			b.add("ann", fmt.Sprintf("a%02d", i), cpus(1))
			b.add("bob", fmt.Sprintf("b%02d", i), cpus(2))
			b.addUrgent("cy", fmt.Sprintf("c%02d", i), -1, cpus(1))
		}
		b.want(deep, []string{"a00", "b00"})
	}
}

func TestScanSkipsClaimedJobs(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("ann", "a", cpus(1))
	b.add("ann", "b", cpus(1))
	s := b.turns.Scan(b.now, maxStart, true, func(id app.JobID) bool { return id == "a" })
	b.queue.visit(s.Visit)
	if len(s.Waiting) != 1 || s.Waiting[0].ID != "b" {
		t.Errorf("found %v, want only b", s.Waiting)
	}
}

func TestImpossibleNamesNeedAndCapacity(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4, MemoryBytes: 8 * gib, GPUs: []string{"0"}})
	b.add("ann", "big", placement.Resources{CPUs: 8, MemoryBytes: 16 * gib, GPUs: 2})
	b.add("ann", "ok", cpus(4))
	want := []Rejection{{"big", `The job needs 2 GPUs, 8 CPUs and 16.0 GiB of memory, but executor "local" has only 1 GPU, 4 CPUs and 8.0 GiB of memory in total. ` +
		"Choose smaller settings, or ask an administrator for another executor."}}
	must.Equal(t, "refusals", b.shallow("ok").Impossible, want)
}

func TestUnboundedExecutorAcceptsAnyJob(t *testing.T) {
	b := newBoard(t, app.Capacity{})
	b.turns = NewFairShare(app.Capacity{}, false, time.Minute)
	for i := range maxStart + 10 {
		b.queue = append(b.queue, app.Waiting{ID: app.JobID(fmt.Sprintf("%03d", i)), Email: fmt.Sprint("u", i%8), Needs: cpus(1000)})
	}
	s := b.turns.Scan(b.now, maxStart, true, skipNone)
	b.queue.visit(s.Visit)
	d := b.turns.Next(b.now, "cluster", s, maxStart)
	must.Equal(t, "jobs start", len(d.Start), maxStart)
	if len(d.Impossible) != 0 {
		t.Errorf("impossible: %v", d.Impossible)
	}
}

func TestDeviceTakenTwiceIsFreeAfterBothEnd(t *testing.T) {
	s := newSlots(app.Capacity{CPUs: 4, GPUs: []string{"0", "1"}}, true)
	needs := placement.Resources{CPUs: 1, GPUs: 1}
	s.take(needs, placement.Devices{GPUs: []string{"0"}}) // its task has ended, but its attempt is not finished
	s.take(needs, placement.Devices{GPUs: []string{"0"}}) // running
	s.release(needs, placement.Devices{GPUs: []string{"0"}})
	if got := s.lease(needs); !slices.Equal(got.GPUs, []string{"1"}) {
		t.Errorf("leased %v, want 1: a job still has 0", got)
	}
}
