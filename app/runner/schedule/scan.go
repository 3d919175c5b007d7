package schedule

import (
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
)

// ScanEvery is how often the queue is scanned deeply while nothing is free; it bounds the
// age of the wait reasons.
const ScanEvery = time.Second

// ScanDepth is the maximum number of waiting jobs of one user that a scan considers.
const ScanDepth = 32

// Scan selects from the queue the jobs that Next has to consider. A shallow scan takes as
// many jobs of each user as could start if that user had all free, unreserved resources.
// Smaller jobs further back are found by the next deep scan.
//
// A deep scan takes up to ScanDepth jobs of every user. Only a deep scan detects jobs
// that no longer wait, and gives a reason for every waiting job.
type Scan struct {
	Deep    bool
	Waiting []app.Waiting // jobs selected so far

	slots    *slots
	limits   *Limits
	skip     func(app.JobID) bool
	limit    int
	reserved *app.Waiting

	begun      bool
	user       User
	priority   int
	looked     int    // jobs of this user and priority taken
	mine, left budget // for this user, and for all users
}

// Scan begins a scan for at most limit starts. It skips the jobs for which skip returns
// true: they are in the queue, but already being claimed. A scan is always deep if the
// job with the reservation can start, so that it is found wherever it is in the queue.
func (t *FairShare) Scan(now time.Time, limit int, deep bool, skip func(app.JobID) bool) *Scan {
	s := &Scan{Deep: deep, slots: &t.slots, limits: t.limits, skip: skip, limit: limit, reserved: t.reservation(now)}
	if s.reserved != nil && t.slots.lacks(s.reserved.Needs, placement.Resources{}) == (placement.Resources{}) {
		s.Deep = true
	}
	s.left = s.budget()
	return s
}

// NothingFree reports whether no further job could start.
func (s *Scan) NothingFree() bool { return s.left.spent() }

// Visit takes or skips one job of the queue.
func (s *Scan) Visit(w app.Waiting) app.Visit {
	if !s.Deep && s.begun && w.Priority != s.priority && s.left.spent() {
		return app.EndVisit
	}
	if !s.begun || w.Priority != s.priority || userOf(w) != s.user {
		s.begun, s.user, s.priority, s.looked, s.mine = true, userOf(w), w.Priority, 0, s.budget()
		s.mine.free = minus(s.mine.free, reservedFrom(w, s.reserved))
		s.mine.limit(s.limits.remaining(s.user))
	}
	if s.skip(w.ID) {
		return app.NextJob
	}
	s.Waiting = append(s.Waiting, w)
	s.looked++
	if s.mine.spend(w.Needs) {
		s.left.spend(w.Needs)
	}
	depth := ScanDepth
	if !s.slots.bounded {
		depth = max(ScanDepth, s.limit) // any number can start
	}
	if s.looked >= depth || !s.Deep && s.mine.spent() {
		return app.NextUser
	}
	return app.NextJob
}

// budget holds the resources that remain if every selected job is started.
type budget struct {
	free    placement.Resources
	starts  int
	bounded bool
}

func (s *Scan) budget() budget {
	return budget{free: s.slots.free(), starts: s.limit, bounded: s.slots.bounded}
}

// spend deducts needs and reports true, or reports false if too little is left.
func (b *budget) spend(needs placement.Resources) bool {
	if b.bounded && short(b.free, needs) != (placement.Resources{}) {
		return false
	}
	b.free = minus(b.free, needs)
	b.starts--
	return true
}

// limit lowers the budget to the resources left by limits.
func (b *budget) limit(left placement.Resources, bounded bool) {
	switch {
	case !bounded:
	case b.bounded:
		b.free.CPUs, b.free.GPUs = min(b.free.CPUs, left.CPUs), min(b.free.GPUs, left.GPUs)
	default:
		b.free, b.bounded = left, true
	}
}

func (b *budget) spent() bool { return b.starts <= 0 || b.bounded && b.free.CPUs <= 0 }
