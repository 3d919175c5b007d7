package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/placement"
)

const gib = 1 << 30

// queueOf is a queue as the store gives it: by priority, user and age.
type queueOf []app.Waiting

func (q queueOf) visit(visit func(app.Waiting) app.Visit) {
	jobs := slices.Clone(q)
	slices.SortStableFunc(jobs, func(a, b app.Waiting) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		if c := strings.Compare(a.Organization+a.Email, b.Organization+b.Email); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	for i := 0; i < len(jobs); {
		next := visit(jobs[i])
		w := jobs[i]
		i++
		if next == app.EndVisit {
			return
		}
		for next == app.NextUser && i < len(jobs) && userOf(jobs[i]) == userOf(w) && jobs[i].Priority == w.Priority {
			i++
		}
	}
}

func (q queueOf) without(gone []lease) queueOf {
	return slices.DeleteFunc(slices.Clone(q), func(w app.Waiting) bool {
		return slices.ContainsFunc(gone, func(l lease) bool { return l.ID == w.ID })
	})
}

// board plays rounds without a clock of its own.
type board struct {
	t     *testing.T
	turns *turns
	queue queueOf
	now   time.Time
	runs  map[app.JobID]lease
}

func newBoard(t *testing.T, c app.Capacity) *board {
	return &board{
		t:     t,
		turns: newTurns(&scripted{name: "local", capacity: c, bounded: true}, 10*time.Minute),
		now:   time.Unix(1e9, 0),
		runs:  map[app.JobID]lease{},
	}
}

func (b *board) add(email, id string, needs placement.Resources) {
	b.queue = append(b.queue, app.Waiting{ID: app.JobID(id), Organization: "lab", Email: email, Needs: needs})
}

func (b *board) addUrgent(email, id string, priority int, needs placement.Resources) {
	b.add(email, id, needs)
	b.queue[len(b.queue)-1].Priority = priority
}

// round plays one round and gives the ids that started.
func (b *board) round() []string {
	b.t.Helper()
	return b.roundOf(true).started
}

type played struct {
	round
	started []string
}

func (b *board) roundOf(thorough bool) played {
	b.t.Helper()
	g := b.turns.gather(b.now, maxPreparing, thorough, func(app.JobID) bool { return false })
	b.queue.visit(g.visit)
	p := played{round: b.turns.choose(b.now, "local", g, maxPreparing)}
	for _, l := range p.Start {
		b.runs[l.ID] = l
		p.started = append(p.started, string(l.ID))
	}
	b.queue = b.queue.without(p.Start)
	b.check()
	return p
}

// check fails where more is in use than there is, or a device twice.
func (b *board) check() {
	b.t.Helper()
	var used placement.Resources
	devices := map[string]bool{}
	for id, l := range b.runs {
		used = plus(used, l.Needs)
		if len(l.GPUs) != l.Needs.GPUs {
			b.t.Errorf("%s has devices %v, needs %d", id, l.GPUs, l.Needs.GPUs)
		}
		for _, d := range l.GPUs {
			if devices[d] {
				b.t.Errorf("device %s is leased twice", d)
			}
			devices[d] = true
		}
	}
	if lack := short(b.turns.slots.total(), used); lack != (placement.Resources{}) {
		b.t.Errorf("in use: %+v of %+v", used, b.turns.slots.total())
	}
	if used != b.turns.slots.used {
		b.t.Errorf("slots count %+v, the jobs hold %+v", b.turns.slots.used, used)
	}
}

func (b *board) end(ids ...string) {
	for _, id := range ids {
		l := b.runs[app.JobID(id)]
		delete(b.runs, l.ID)
		b.turns.end(userOf(l.Waiting), l.Needs, l.GPUs)
	}
}

func cpus(n int) placement.Resources { return placement.Resources{CPUs: n} }

func TestOneJobOfAnotherUserIsNext(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2})
	for i := range 1000 {
		b.add("ann", fmt.Sprintf("a%04d", i), cpus(1))
	}
	want := []string{"a0000", "a0001"}
	if got := b.round(); !slices.Equal(got, want) {
		t.Fatalf("started %v, want %v", got, want)
	}
	b.now = b.now.Add(24 * time.Hour) // however long ann's jobs have waited
	b.round()
	b.add("bob", "b", cpus(1))
	b.end("a0000")
	if got, want := b.roundOf(false).started, []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestTurnsGoRoundAmongUsers(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 1})
	for i := range 3 {
		for _, u := range []string{"ann", "bob", "cy"} {
			b.add(u, fmt.Sprintf("%s%d", u, i), cpus(1))
		}
	}
	var got []string
	for range 9 {
		started := b.roundOf(false).started
		got = append(got, started...)
		b.end(started...)
	}
	want := []string{"ann0", "bob0", "cy0", "ann1", "bob1", "cy1", "ann2", "bob2", "cy2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestFewestRunningGoesBeforeLeastRecent(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 3})
	b.add("ann", "a0", cpus(1))
	b.add("ann", "a1", cpus(1))
	b.round()
	b.add("bob", "b0", cpus(1))
	b.round()
	b.end("b0") // bob started last, and has nothing running
	b.add("ann", "a2", cpus(1))
	b.add("bob", "b1", cpus(1))
	if got, want := b.round(), []string{"b1"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestSameEmailInTwoOrganizationsIsTwoUsers(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2})
	b.add("ann", "a1", cpus(1))
	b.add("ann", "a2", cpus(1))
	b.add("ann", "z1", cpus(1))
	b.queue[2].Organization = "other"
	if got, want := b.round(), []string{"a1", "z1"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestHigherPriorityStartsFirst(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2})
	b.add("ann", "a", cpus(1))
	b.addUrgent("bob", "b-low", -3, cpus(1))
	b.addUrgent("cy", "c-high", 5, cpus(1))
	if got, want := b.round(), []string{"c-high", "a"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestFiveJobsShareTwoDevices(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"GPU-a", "GPU-b"}})
	needs := placement.Resources{CPUs: 1, GPUs: 1}
	for i := range 5 {
		b.add("ann", fmt.Sprint(i), needs)
	}
	p := b.roundOf(true)
	if want := []string{"0", "1"}; !slices.Equal(p.started, want) {
		t.Fatalf("started %v, want %v", p.started, want)
	}
	if got, want := p.Reasons["2"], "waiting for its turn"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	if got, want := b.roundOf(true).Reasons["2"], "waiting for 1 GPU"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	freed := b.runs["1"].GPUs
	b.end("1")
	if got := b.roundOf(true); !slices.Equal(got.Start[0].GPUs, freed) {
		t.Errorf("job 2 got %v, want the freed %v", got.Start[0].GPUs, freed)
	}
	b.end("0", "2")
	if got, want := b.round(), []string{"3", "4"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestWhatDoesNotFitIsPassedOver(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4, MemoryBytes: 8 * gib})
	b.add("ann", "1-runs", cpus(2))
	b.add("ann", "2-wide", cpus(3))
	b.add("ann", "3-fat", placement.Resources{CPUs: 1, MemoryBytes: 6 * gib})
	b.add("ann", "4-fat", placement.Resources{CPUs: 1, MemoryBytes: 6 * gib})
	p := b.roundOf(true)
	if want := []string{"1-runs", "3-fat"}; !slices.Equal(p.started, want) {
		t.Fatalf("started %v, want %v", p.started, want)
	}
	p = b.roundOf(true)
	want := map[app.JobID]string{"2-wide": "waiting for 3 CPUs", "4-fat": "waiting for 6.0 GiB of memory"}
	if diff := cmp.Diff(want, p.Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestLookIsBoundedForEachUser(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4, GPUs: []string{"0"}})
	b.add("ann", "0", placement.Resources{CPUs: 1, GPUs: 1})
	b.round()
	for i := range 40 {
		b.add("ann", fmt.Sprintf("g%02d", i), placement.Resources{CPUs: 1, GPUs: 1})
	}
	b.add("ann", "late", cpus(1))
	b.add("bob", "b", cpus(1))
	p := b.roundOf(true)
	if want := []string{"b"}; !slices.Equal(p.started, want) {
		t.Errorf("started %v, want %v", p.started, want)
	}
	if got := len(p.Reasons); got != lookDepth {
		t.Errorf("%d jobs were looked at, want %d", got, lookDepth)
	}
}

func TestShallowLookFindsWhatADeepOneWouldStart(t *testing.T) {
	for _, thorough := range []bool{false, true} {
		b := newBoard(t, app.Capacity{CPUs: 3})
		for i := range 50 {
			b.add("ann", fmt.Sprintf("a%02d", i), cpus(1))
			b.add("bob", fmt.Sprintf("b%02d", i), cpus(2))
			b.addUrgent("cy", fmt.Sprintf("c%02d", i), -1, cpus(1))
		}
		if got, want := b.roundOf(thorough).started, []string{"a00", "b00"}; !slices.Equal(got, want) {
			t.Errorf("thorough %v: started %v, want %v", thorough, got, want)
		}
	}
}

func TestWholeMachineIsReservedAfterTenMinutes(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	for i := range 3 {
		b.add("bob", fmt.Sprintf("b%d", i), cpus(1))
	}
	b.round()
	b.add("ann", "whole", cpus(4))
	next := 3
	smalls := func() {
		b.add("bob", fmt.Sprintf("b%d", next), cpus(1))
		next++
	}
	smalls()
	if got := b.round(); !slices.Equal(got, []string{"b3"}) {
		t.Fatalf("before: started %v, want b3 past the large job", got)
	}
	b.now = b.now.Add(9 * time.Minute)
	smalls()
	b.end("b0")
	if got := b.round(); !slices.Equal(got, []string{"b4"}) {
		t.Fatalf("after 9 minutes: started %v, want b4", got)
	}
	b.now = b.now.Add(time.Minute)
	smalls()
	b.end("b1", "b2", "b3")
	p := b.roundOf(true)
	if len(p.started) != 0 {
		t.Fatalf("after 10 minutes: started %v, want none", p.started)
	}
	if got, want := p.Reasons["whole"], "reserved: next to start, waiting for 4 CPUs"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	if got := p.Reasons["b5"]; !strings.HasPrefix(got, "reserved: ") {
		t.Errorf("reason of a job that is held back: %q", got)
	}
	b.end("b4")
	if got := b.round(); !slices.Equal(got, []string{"whole"}) {
		t.Fatalf("started %v, want the large job", got)
	}
	b.end("whole")
	if got := b.round(); !slices.Equal(got, []string{"b5"}) {
		t.Errorf("after it: started %v, want b5", got)
	}
}

func TestReservationLeavesOthersWhatItDoesNotNeed(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"0", "1"}})
	b.add("ann", "0", placement.Resources{CPUs: 1, GPUs: 1})
	b.round()
	b.add("cy", "both", placement.Resources{CPUs: 2, GPUs: 2})
	b.add("bob", "first", cpus(1))
	b.round() // first passes
	b.now = b.now.Add(11 * time.Minute)
	b.add("bob", "gpu", placement.Resources{CPUs: 1, GPUs: 1})
	b.add("bob", "many", cpus(5))
	b.add("bob", "some", cpus(4))
	p := b.roundOf(true)
	if want := []string{"some"}; !slices.Equal(p.started, want) {
		t.Errorf("started %v, want %v: 2 devices and 2 CPUs are kept", p.started, want)
	}
}

// passOver brings a board of four CPUs to where ann's job that needs all of
// them has just been passed over by bob, who runs three.
func passOver(t *testing.T) *board {
	t.Helper()
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("ann", "a0", cpus(1))
	for i := range 3 {
		b.add("bob", fmt.Sprintf("b%d", i), cpus(1))
	}
	b.round()
	b.add("ann", "whole", cpus(4))
	b.add("bob", "b3", cpus(1))
	b.end("b0")
	if got := b.round(); !slices.Equal(got, []string{"b3"}) {
		t.Fatalf("started %v, want b3 past the large job", got)
	}
	return b
}

func TestReservationHoldsWhereAShallowLookEndsBeforeIt(t *testing.T) {
	b := passOver(t)
	b.now = b.now.Add(11 * time.Minute)
	b.add("ann", "a1", cpus(1)) // older than the large one, tried again
	b.add("bob", "b4", cpus(1))
	for _, id := range []string{"b1", "b2", "b3"} {
		b.end(id)
		if got := b.roundOf(false).started; len(got) != 0 {
			t.Fatalf("as %s ended: started %v in the room kept for the large job", id, got)
		}
	}
	b.end("a0")
	if got := b.roundOf(false).started; !slices.Equal(got, []string{"whole"}) {
		t.Errorf("started %v, want the large job", got)
	}
}

func TestShallowLookGoesPastWhatAReservationHolds(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"0"}})
	b.add("ann", "0", placement.Resources{CPUs: 1, GPUs: 1})
	b.round()
	b.add("cy", "device", placement.Resources{CPUs: 4, GPUs: 1})
	b.add("ann", "1", cpus(1))
	b.round() // passes
	b.now = b.now.Add(11 * time.Minute)
	b.add("bob", "many", cpus(6)) // all that is free, of which 4 are kept
	b.add("bob", "some", cpus(2))
	if got, want := b.roundOf(false).started, []string{"some"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestJobThatWasCancelledAndTriedAgainIsPatientAnew(t *testing.T) {
	b := passOver(t)
	whole := b.queue
	b.queue = nil
	b.now = b.now.Add(9 * time.Minute)
	b.round()
	b.queue = whole
	b.now = b.now.Add(2 * time.Minute)
	b.add("bob", "b4", cpus(1))
	b.end("b1")
	if got := b.round(); !slices.Equal(got, []string{"b4"}) {
		t.Errorf("started %v, want b4: the large job has waited for a moment", got)
	}
}

func TestHigherPriorityIsNotBoundByReservation(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("bob", "b0", cpus(2))
	b.round()
	b.add("ann", "whole", cpus(4))
	b.add("bob", "b1", cpus(1))
	b.round()
	b.now = b.now.Add(time.Hour)
	b.add("cy", "c", cpus(1))
	b.addUrgent("admin", "urgent", 1, cpus(1))
	if got, want := b.round(), []string{"urgent"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestOnlyOneReservationAtATime(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("bob", "b0", cpus(2))
	b.round()
	b.add("ann", "w1", cpus(4))
	b.add("ann", "w2", cpus(4))
	b.add("bob", "b1", cpus(1))
	b.round()
	b.now = b.now.Add(time.Hour)
	b.end("b0", "b1")
	if got := b.round(); !slices.Equal(got, []string{"w1"}) {
		t.Fatalf("started %v, want w1", got)
	}
	b.add("bob", "b2", cpus(1))
	b.end("w1")
	if got := b.round(); !slices.Equal(got, []string{"w2"}) {
		t.Errorf("started %v, want w2, which waits as long", got)
	}
}

func TestImpossibleNamesNeedAndCapacity(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4, MemoryBytes: 8 * gib, GPUs: []string{"0"}})
	b.add("ann", "big", placement.Resources{CPUs: 2, MemoryBytes: 16 * gib, GPUs: 2})
	b.add("ann", "ok", cpus(4))
	p := b.roundOf(false)
	if want := []string{"ok"}; !slices.Equal(p.started, want) {
		t.Errorf("started %v, want %v", p.started, want)
	}
	want := []refusal{{"big", `The job needs 2 GPUs and 16.0 GiB of memory, but the executor "local" has 1 GPU and 8.0 GiB of memory in all. ` +
		"Choose settings that need less, or ask an administrator for another executor."}}
	if diff := cmp.Diff(want, p.Impossible); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}

func TestExecutorWithoutCapacityTakesAnything(t *testing.T) {
	b := newBoard(t, app.Capacity{})
	b.turns = newTurns(&scripted{name: "cluster"}, time.Minute)
	for i := range maxPreparing + 10 {
		b.queue = append(b.queue, app.Waiting{ID: app.JobID(fmt.Sprintf("%03d", i)), Email: fmt.Sprint("u", i%8), Needs: cpus(1000)})
	}
	g := b.turns.gather(b.now, maxPreparing, true, func(app.JobID) bool { return false })
	b.queue.visit(g.visit)
	p := b.turns.choose(b.now, "cluster", g, maxPreparing)
	if got := len(p.Start); got != maxPreparing {
		t.Errorf("%d jobs start, want %d", got, maxPreparing)
	}
	if len(p.Impossible) != 0 {
		t.Errorf("impossible: %v", p.Impossible)
	}
}

func TestJobsInHandAreLeftOut(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 4})
	b.add("ann", "a", cpus(1))
	b.add("ann", "b", cpus(1))
	g := b.turns.gather(b.now, maxPreparing, true, func(id app.JobID) bool { return id == "a" })
	b.queue.visit(g.visit)
	if len(g.waiting) != 1 || g.waiting[0].ID != "b" {
		t.Errorf("gathered %v, want b alone", g.waiting)
	}
}

func TestDeviceHeldTwiceIsFreeAfterBothEnd(t *testing.T) {
	s := newSlots(&scripted{capacity: app.Capacity{CPUs: 4, GPUs: []string{"0", "1"}}, bounded: true})
	needs := placement.Resources{CPUs: 1, GPUs: 1}
	s.hold(needs, []string{"0"}) // ended, not settled
	s.hold(needs, []string{"0"}) // runs
	s.release(needs, []string{"0"})
	if got := s.lease(needs); !slices.Equal(got, []string{"1"}) {
		t.Errorf("leased %v, want 1: a job still has 0", got)
	}
}

func TestAmounts(t *testing.T) {
	tests := []struct {
		r    placement.Resources
		want string
	}{
		{placement.Resources{}, "nothing"},
		{placement.Resources{CPUs: 1}, "1 CPU"},
		{placement.Resources{GPUs: 1, CPUs: 4}, "1 GPU and 4 CPUs"},
		{placement.Resources{GPUs: 2, CPUs: 4, MemoryBytes: 3 * gib / 2}, "2 GPUs, 4 CPUs and 1.5 GiB of memory"},
		{placement.Resources{MemoryBytes: 1000}, "1000 bytes of memory"},
		{placement.Resources{MemoryBytes: 1 << 20}, "1.0 MiB of memory"},
	}
	for _, tt := range tests {
		if got := amounts(tt.r); got != tt.want {
			t.Errorf("amounts(%+v) = %q, want %q", tt.r, got, tt.want)
		}
	}
}
