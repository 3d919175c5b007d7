package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
)

const (
	gib      = 1 << 30
	maxStart = 64
)

func cpus(n int) placement.Resources { return placement.Resources{CPUs: n} }

func skipNone(app.JobID) bool { return false }

// queueOf is a queue in the store's order: by priority, user and age.
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

func (q queueOf) without(gone []StartDecision) queueOf {
	return slices.DeleteFunc(slices.Clone(q), func(w app.Waiting) bool {
		return slices.ContainsFunc(gone, func(s StartDecision) bool { return s.ID == w.ID })
	})
}

// board runs scheduling rounds at times set by the test.
type board struct {
	t     *testing.T
	turns *FairShare
	queue queueOf
	now   time.Time
	runs  map[app.JobID]Lease
}

func newBoard(t *testing.T, c app.Capacity) *board {
	return &board{
		t:     t,
		turns: NewFairShare(c, true, 10*time.Minute),
		now:   time.Unix(1e9, 0),
		runs:  map[app.JobID]Lease{},
	}
}

func (b *board) add(email, id string, needs placement.Resources) {
	b.queue = append(b.queue, app.Waiting{ID: app.JobID(id), Organization: "lab", Email: email, Needs: needs})
}

func (b *board) addUrgent(email, id string, priority int, needs placement.Resources) {
	b.add(email, id, needs)
	b.queue[len(b.queue)-1].Priority = priority
}

// play runs one round.
func (b *board) play(deep bool) (d Decision, started []string) {
	b.t.Helper()
	s := b.turns.Scan(b.now, maxStart, deep, skipNone)
	b.queue.visit(s.Visit)
	d = b.turns.Next(b.now, "local", s, maxStart)
	for _, s := range d.Start {
		b.runs[s.ID] = s.Lease
		started = append(started, string(s.ID))
	}
	b.queue = b.queue.without(d.Start)
	b.check()
	return d, started
}

// deep runs a round with a deep scan and checks that exactly these jobs start.
func (b *board) deep(want ...string) Decision {
	b.t.Helper()
	return b.want(true, want)
}

// shallow is like deep, with a shallow scan.
func (b *board) shallow(want ...string) Decision {
	b.t.Helper()
	return b.want(false, want)
}

func (b *board) want(deep bool, want []string) Decision {
	b.t.Helper()
	d, started := b.play(deep)
	if !slices.Equal(started, want) {
		b.t.Fatalf("deep %v: started %v, want %v", deep, started, want)
	}
	return d
}

// check fails if more resources are in use than exist, or a device is used twice.
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
	if lack := short(b.turns.slots.total(), used); b.turns.slots.bounded && lack != (placement.Resources{}) {
		b.t.Errorf("in use: %+v of %+v", used, b.turns.slots.total())
	}
	if used != b.turns.slots.used {
		b.t.Errorf("slots count %+v, the jobs use %+v", b.turns.slots.used, used)
	}
}

func (b *board) end(ids ...string) {
	for _, id := range ids {
		b.turns.ReleaseSlot(b.runs[app.JobID(id)])
		delete(b.runs, app.JobID(id))
	}
}
