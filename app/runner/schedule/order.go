package schedule

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"molrun/app"
)

// Line is the number of waiting jobs of one user and priority.
type Line struct {
	User     User
	Priority int
	Head     app.JobID // the oldest job
	Count    int
}

// Order is the order in which waiting jobs start, provided that every job fits when it is
// next. It is valid until another job arrives or ends. It is computed from the number of
// jobs in each line, not from the jobs.
type Order struct {
	lines    []position
	reserved Spot
}

// Spot is a job's position in the queue: the N-th job of a line, counted from 0.
type Spot struct{ Line, N int }

// NoSpot stands for no job.
var NoSpot = Spot{-1, -1}

// position holds what determines the positions of a line's jobs.
type position struct {
	before  int // number of jobs of higher priority, plus the job with the reservation if it has this priority
	peers   []*position
	running int    // number of jobs that its user runs once those jobs have started
	started uint64 // when its user last started a job by then
	head    app.JobID
	count   int
	rank    int // its rank among peers whose users run equally many jobs
}

// Clone returns an independent copy of t.
func (t *FairShare) Clone() *FairShare {
	c := *t
	c.slots = t.slots.clone()
	c.running, c.started, c.passed = maps.Clone(t.running), maps.Clone(t.started), maps.Clone(t.passed)
	c.limits, c.limited = t.limits.clone(), maps.Clone(t.limited)
	return &c
}

// Mute stops Next from giving reasons, which cost more than its decisions.
func (t *FairShare) Mute() { t.mute = true }

// Reserved returns the job that holds the reservation, or "" if there is none.
func (t *FairShare) Reserved(now time.Time) app.JobID {
	if w := t.reservation(now); w != nil {
		return w.ID
	}
	return ""
}

// Order returns the scheduling order of lines sorted by descending priority, where the
// job at reserved holds the reservation.
func (t *FairShare) Order(lines []Line, reserved Spot) *Order {
	o := &Order{lines: make([]position, len(lines)), reserved: reserved}
	running, started, starts := maps.Clone(t.running), maps.Clone(t.started), t.starts
	start := func(u User, n int) {
		starts++
		running[u] += n
		started[u] = starts
	}
	before := 0
	for from, to := 0, 0; from < len(lines); from = to {
		for to < len(lines) && lines[to].Priority == lines[from].Priority {
			to++
		}
		counts := make([]int, to)
		for i := from; i < to; i++ {
			counts[i] = lines[i].Count
		}
		if from <= reserved.Line && reserved.Line < to {
			start(lines[reserved.Line].User, 1)
			counts[reserved.Line]--
			before++
		}
		var peers []*position
		for i := from; i < to; i++ {
			u := lines[i].User
			o.lines[i] = position{before: before, running: running[u], started: started[u], head: lines[i].Head, count: counts[i]}
			peers = append(peers, &o.lines[i])
		}
		slices.SortFunc(peers, (*position).compare)
		for i, p := range peers {
			p.rank, p.peers = i, peers
			before += p.count
		}
		for _, i := range lastStarts(o.lines[from:to]) {
			start(lines[from+i].User, o.lines[from+i].count)
		}
	}
	return o
}

// compare orders users who run equally many jobs after some rounds. The user who ran more
// at the beginning has started a job less recently.
func (p *position) compare(q *position) int {
	return cmp.Or(cmp.Compare(q.running, p.running), cmp.Compare(p.started, q.started), cmp.Compare(p.head, q.head))
}

// lastStarts lists the non-empty lines of one priority in the order in which they start
// their last job.
func lastStarts(lines []position) []int {
	var all []int
	for i, p := range lines {
		if p.count > 0 {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b int) int {
		p, q := lines[a], lines[b]
		return cmp.Or(cmp.Compare(p.running+p.count, q.running+q.count), cmp.Compare(p.rank, q.rank))
	})
	return all
}

// Position returns the position of a job in the order, from 1. It visits each line of the
// job's priority.
func (o *Order) Position(s Spot) int {
	p, n := &o.lines[s.Line], s.N
	switch {
	case s == o.reserved:
		return p.before
	case s.Line == o.reserved.Line && n > o.reserved.N:
		n--
	}
	position := p.before + 1
	for _, q := range p.peers {
		first := p.running + n - q.running // number of q's jobs in rounds before this one
		if q.rank < p.rank {
			first++
		}
		position += min(max(first, 0), q.count)
	}
	return position
}
