package simulation

import (
	"math/rand/v2"
	"time"

	"molrun/app"
)

// drainWithin is how long everything may take to come to its end: no job runs
// longer than five minutes, and none has more than a few attempts.
const drainWithin = 12 * time.Hour

// drain puts everything in order and waits until every job has ended.
func (s *simulation) drain() {
	s.tracef("-- all is put in order")
	s.rng = rand.New(rand.NewPCG(s.plan.seed, 1))
	s.crashIn, s.slowTill = 0, time.Time{}
	s.fullTill = earlier(s.fullTill, time.Now()) // answers under way may still be about it
	s.machine.hide(time.Time{})
	s.notCalmBefore(time.Now().Add(retriedWithin))
	s.up()
	for begin := time.Now(); len(s.faults) == 0; s.pass(time.Minute) {
		open := s.ledger.sorted(func(e *entry) bool { return !e.Status.Finished() })
		if len(open)+len(s.requests) == 0 {
			break
		}
		if time.Since(begin) > drainWithin {
			s.complain("%d jobs never end, %d requests are never answered", len(open), len(s.requests))
		}
	}
	s.pass(startsWithin)
	s.check()
	s.judgeEnd()
}

// judgeEnd looks at what is left when everything has ended.
func (s *simulation) judgeEnd() {
	for _, l := range s.machine.tasks {
		if l.lives(time.Now()) {
			s.complain("%s: attempt %d lives though its job has ended", s.names.of(l.Job), l.Attempt)
		}
	}
	if s.process == nil || len(s.faults) > 0 {
		return
	}
	for _, e := range s.ledger.sorted(func(e *entry) bool { return e.Status == app.Completed && !e.IsBatch() }) {
		if err := s.keptResult(e.stored); err != nil {
			s.complain("%s: %v", e.Name, err)
		}
	}
}
