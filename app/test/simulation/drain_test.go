package simulation

import (
	"math/rand/v2"
	"time"

	"molrun/app"
)

// drainWithin is the time within which all jobs must be finished: no job runs for more
// than five minutes, and each has only a few attempts.
const drainWithin = 12 * time.Hour

// drain ends all faults and waits until every job is finished.
func (s *simulation) drain() {
	s.tracef("-- all faults end")
	s.rng = rand.New(rand.NewPCG(s.plan.seed, 1))
	s.crashIn, s.slowUntil = 0, time.Time{}
	s.fullUntil = earlier(s.fullUntil, time.Now()) // pending responses can still depend on it
	s.machine.makeUnreachable(time.Time{})
	s.receivers.recover()
	s.unstableUntil(time.Now().Add(retriedWithin))
	s.up()
	for begin := time.Now(); len(s.faults) == 0; s.pass(time.Minute) {
		open := s.ledger.sorted(func(e *entry) bool { return !e.Status.Finished() && !s.ledger.stalled(e) })
		if len(open)+len(s.requests)+s.pending() == 0 {
			break
		}
		if time.Since(begin) > drainWithin {
			s.faultf("%d jobs never finish, %d requests are never answered, %d messages never arrive", len(open), len(s.requests), s.pending())
		}
	}
	s.pass(startsWithin)
	s.judgeWorkersExited()
	s.check()
	s.judgeListeners()
	s.judgeFiles()
	s.judgeEnd()
}

// judgeEnd checks tasks and results once all jobs are finished.
func (s *simulation) judgeEnd() {
	for _, l := range s.machine.tasks {
		if l.running(time.Now()) {
			s.faultf("%s: attempt %d still runs, but its job is finished", s.names.of(l.Job), l.Attempt)
		}
	}
	for _, e := range s.ledger.sorted(func(e *entry) bool { return e.Private.Unpropagated }) {
		s.faultf("%s: its status is never propagated to its dependents", e.Name)
	}
	if s.process == nil || len(s.faults) > 0 {
		return
	}
	for _, e := range s.ledger.sorted(func(e *entry) bool { return e.Status == app.Completed && !e.IsBatch() }) {
		if err := s.checkResult(e.stored); err != nil {
			s.faultf("%s: %v", e.Name, err)
		}
	}
}
