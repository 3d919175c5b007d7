package runner

import (
	"fmt"
	"maps"
	"time"

	"molrun/app"
	"molrun/app/placement"
)

// lookDepth is how many waiting jobs of one user are looked at in one round.
const lookDepth = 32

// user is a person in an organization: turns go round among users, however
// many jobs each has queued.
type user struct{ organization, email string }

func userOf(w app.Waiting) user { return user{w.Organization, w.Email} }

// turns decides who is next on one executor. It does no I/O and has no clock:
// what is in the queue and what time it is are given to it.
type turns struct {
	slots    slots
	running  map[user]int    // jobs that hold room
	started  map[user]uint64 // when the user last started a job, counted in starts
	starts   uint64
	passed   map[app.JobID]*passedOver // all of them waited at the last thorough look
	patience time.Duration             // after which a job that was passed over reserves room
}

// passedOver is the memory of a job that did not fit when its turn came and
// saw another one start in its place.
type passedOver struct {
	app.Waiting
	since time.Time
}

func newTurns(e app.Executor, patience time.Duration) *turns {
	return &turns{
		slots:    newSlots(e),
		running:  map[user]int{},
		started:  map[user]uint64{},
		passed:   map[app.JobID]*passedOver{},
		patience: patience,
	}
}

// round is what one look at the queue decides.
type round struct {
	Start      []lease
	Impossible []refusal
	Reasons    map[app.JobID]string // why those that were looked at wait
}

// lease is a job to start and the devices it gets.
type lease struct {
	app.Waiting
	GPUs []string
}

// refusal is a job that can never start here, and why.
type refusal struct {
	ID      app.JobID
	Message string
}

// begin counts a job as running, as after a restart.
func (t *turns) begin(u user, needs placement.Resources, gpus []string) {
	t.running[u]++
	t.slots.hold(needs, gpus)
}

// end gives back the room of a job.
func (t *turns) end(u user, needs placement.Resources, gpus []string) {
	t.slots.release(needs, gpus)
	if t.running[u]--; t.running[u] == 0 {
		delete(t.running, u)
	}
}

// choose decides which of the gathered jobs start now, at most limit. They
// come in the order of the queue: higher priority first, then user by user.
// What it lets start is taken from the slots.
func (t *turns) choose(now time.Time, executor string, g *gathering, limit int) round {
	if g.thorough {
		t.forgetAllBut(g.waiting)
	}
	c := &choice{
		turns:    t,
		now:      now,
		limit:    limit,
		free:     t.slots.free(),
		reserved: t.reservation(now),
		round:    round{Reasons: map[app.JobID]string{}},
	}
	possible := c.refuse(executor, g.waiting)
	for len(possible) > 0 {
		level, rest := cutLevel(possible)
		c.serve(linesOf(level))
		possible = rest
	}
	return c.round
}

// reservation gives the job for which room is kept: of those passed over for
// too long the one of the highest priority, then the one that waits longest.
// The order does not depend on what runs, so the reservation does not move
// from one job to another before the first has started. Nor does it depend on
// how deep a round looks: room that was kept a moment ago is not given away
// because the job stands behind others of its user.
func (t *turns) reservation(now time.Time) *app.Waiting {
	var first *passedOver
	for _, p := range t.passed {
		if now.Sub(p.since) >= t.patience && (first == nil || p.before(first)) {
			first = p
		}
	}
	if first == nil {
		return nil
	}
	return &first.Waiting
}

func (p *passedOver) before(q *passedOver) bool {
	if p.Priority != q.Priority {
		return p.Priority > q.Priority
	}
	if !p.since.Equal(q.since) {
		return p.since.Before(q.since)
	}
	return p.ID < q.ID
}

// forgetAllBut forgets who no longer waits, though it may come back: a job that
// is cancelled and tried again begins to wait anew.
func (t *turns) forgetAllBut(waiting []app.Waiting) {
	if len(t.passed) == 0 {
		return
	}
	waits := make(map[app.JobID]bool, len(waiting))
	for _, w := range waiting {
		waits[w.ID] = true
	}
	maps.DeleteFunc(t.passed, func(id app.JobID, _ *passedOver) bool { return !waits[id] })
}

// line is the waiting jobs of one user and priority, oldest first.
type line struct {
	user user
	jobs []app.Waiting
}

// cutLevel splits off the jobs of the first priority.
func cutLevel(waiting []app.Waiting) (level, rest []app.Waiting) {
	n := 1
	for n < len(waiting) && waiting[n].Priority == waiting[0].Priority {
		n++
	}
	return waiting[:n], waiting[n:]
}

// linesOf splits one level by user.
func linesOf(level []app.Waiting) []*line {
	var lines []*line
	for i, w := range level {
		if i == 0 || userOf(w) != userOf(level[i-1]) {
			lines = append(lines, &line{user: userOf(w)})
		}
		last := lines[len(lines)-1]
		last.jobs = append(last.jobs, w)
	}
	return lines
}

// next gives the line whose turn it is, nil where all are empty.
func (t *turns) next(lines []*line) *line {
	var first *line
	for _, l := range lines {
		if len(l.jobs) > 0 && (first == nil || t.sooner(l, first)) {
			first = l
		}
	}
	return first
}

// sooner compares by fewest running, least recently started, then age.
func (t *turns) sooner(a, b *line) bool {
	if x, y := t.running[a.user], t.running[b.user]; x != y {
		return x < y
	}
	if x, y := t.started[a.user], t.started[b.user]; x != y {
		return x < y
	}
	return a.jobs[0].ID < b.jobs[0].ID
}

// impossible says why a job can never start.
func impossible(executor string, needs, has placement.Resources) string {
	return fmt.Sprintf("The job needs %s, but the executor %q has %s in all. "+
		"Choose settings that need less, or ask an administrator for another executor.",
		amounts(needs), executor, amounts(has))
}
