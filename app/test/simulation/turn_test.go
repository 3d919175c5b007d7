package simulation

import (
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
)

const (
	// startsWithin is the time within which a job that fits must start. It is far shorter
	// than the interval at which the runner checks the queue without being woken.
	startsWithin = 2 * time.Second
	// retriedWithin is the time within which the runner retries failed operations, and
	// seenWithin the time after a start within which it has polled all tasks.
	retriedWithin = 40 * time.Second
	seenWithin    = 6 * time.Second
)

type user struct{ organization, email string }

func userOf(j *app.Job) user { return user{j.Organization, j.Email} }

// freeResources returns the resources that claimed jobs leave free.
func (s *simulation) freeResources(uses func(*entry) bool) placement.Resources {
	left := placement.Resources{
		CPUs: s.machine.capacity.CPUs, MemoryBytes: s.machine.capacity.MemoryBytes, GPUs: len(s.machine.capacity.GPUs),
	}
	for _, e := range s.holders(uses) {
		left = without(left, e.Private.Needs)
	}
	return left
}

func without(a, b placement.Resources) placement.Resources {
	return placement.Resources{CPUs: a.CPUs - b.CPUs, MemoryBytes: a.MemoryBytes - b.MemoryBytes, GPUs: a.GPUs - b.GPUs}
}

// fits reports whether the free resources meet the needs. A resource that is not needed
// may be overcommitted.
func fits(needs, free placement.Resources) bool {
	return (needs.CPUs == 0 || needs.CPUs <= free.CPUs) &&
		(needs.MemoryBytes == 0 || needs.MemoryBytes <= free.MemoryBytes) &&
		(needs.GPUs == 0 || needs.GPUs <= free.GPUs)
}

// judgeResources checks that the machine is not overcommitted. Jobs whose tasks have
// ended use nothing.
func (s *simulation) judgeResources() {
	now := time.Now()
	uses := func(e *entry) bool {
		task := s.machine.find(e.Private.Token)
		return task == nil && s.needsSlot(e) || task != nil && task.running(now)
	}
	if left := s.freeResources(uses); left.CPUs < 0 || left.MemoryBytes < 0 || left.GPUs < 0 {
		s.faultf("the machine is overcommitted: %+v left", left)
	}
	s.judgeLimits(uses)
	devices := map[string]string{}
	for _, e := range s.holders(uses) {
		for _, d := range e.Private.GPUs {
			if devices[d] != "" {
				s.faultf("the device %s is assigned to two jobs", d)
			}
			devices[d] = e.Name
		}
	}
}

// stable reports whether the runner has had time to recover from the last fault.
func (s *simulation) stable() bool {
	return s.process != nil && s.stopping == nil && time.Now().After(s.stableFrom)
}

// unstableUntil records that the runner might need until t to recover from a fault.
func (s *simulation) unstableUntil(t time.Time) {
	if t.After(s.stableFrom) {
		s.stableFrom = t
	}
}

// noteStartable records which jobs can start at a moment when no call is waiting.
func (s *simulation) noteStartable() {
	now := time.Now()
	startable := map[app.JobID]time.Time{}
	free := s.freeResources(func(*entry) bool { return true })
	for id, e := range s.ledger.jobs {
		if !e.waits() || !s.mayStart(e, free) {
			continue
		}
		if startable[id] = s.startable[id]; startable[id].IsZero() {
			startable[id] = now
		}
	}
	s.startable = startable
}

// mayStart reports whether the job must be able to start: it must fit even if every job
// that might have a reservation also starts.
func (s *simulation) mayStart(e *entry, free placement.Resources) bool {
	if !fits(e.Private.Needs, free) || s.heldUp(e) {
		return false
	}
	for _, other := range s.ledger.jobs {
		if other != e && other.waits() && s.mayHaveReservation(other) && other.Priority >= e.Priority &&
			!fits(e.Private.Needs, without(free, other.Private.Needs)) {
			return false
		}
	}
	return true
}

// mayHaveReservation reports whether the job might have a reservation. A job that was
// canceled and retried might have been passed over before.
func (s *simulation) mayHaveReservation(e *entry) bool {
	return time.Since(e.submittedAt) >= s.reserveAfter-startsWithin
}

// judgeQueue reports jobs that should have started long ago.
func (s *simulation) judgeQueue() {
	if !s.stable() {
		s.startable = nil
		return
	}
	s.judgeStops()
	free := s.freeResources(func(*entry) bool { return true })
	for _, e := range s.ledger.sorted((*entry).waits) {
		since := s.startable[e.ID]
		if since.IsZero() || time.Since(since) <= startsWithin || !s.mayStart(e, free) {
			continue
		}
		s.faultf("%s/%s could have started %v ago, but did not", e.Organization, e.Name, time.Since(since))
	}
}

// judgeStops reports tasks that should have been stopped long ago.
func (s *simulation) judgeStops() {
	now := time.Now()
	for _, e := range s.ledger.sorted(func(e *entry) bool { return e.Private.Stop }) {
		task := s.machine.find(e.Private.Token)
		lives := task != nil && task.running(now) || e.Private.Worker != "" && s.machine.mayBegin(s.attemptDir(e))
		if lives && now.Sub(e.stopped) > startsWithin && !s.machine.stopAsked(e.Private.Token) {
			s.faultf("%s/%s was cancelled %v ago, but Stop was not called", e.Organization, e.Name, now.Sub(e.stopped))
		}
	}
}
