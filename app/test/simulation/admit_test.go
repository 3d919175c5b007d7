package simulation

import (
	"cmp"
	"context"
	"slices"
	"testing/synctest"
	"time"

	"molrun/app"
)

// admitDue admits the calls that are due, one at a time, until none is left at the
// current time.
func (s *simulation) admitDue() {
	for n := 0; len(s.faults) == 0; n++ {
		synctest.Wait()
		s.absorb()
		s.collect()
		due, polls := s.due()
		if len(due)+len(polls) == 0 {
			break
		}
		if n == 3000 {
			s.faultf("the calls at this moment never end, the last is %s", append(due, polls...)[0])
			return
		}
		if len(due) == 0 {
			s.machine.move()
			s.process.door.admit(polls[0])
			continue
		}
		s.admit(due)
	}
	s.machine.move()
	s.ends()
	if !s.quiet() {
		s.startable = nil
		return
	}
	s.judgeWaiting()
	s.noteStartable()
}

// quiet reports whether no call is waiting at the door.
func (s *simulation) quiet() bool { return s.process != nil && len(s.process.door.visits()) == 0 }

// ends discards a process that was asked to stop and has exited.
func (s *simulation) ends() {
	if s.stopping == nil {
		return
	}
	select {
	case <-s.stopping.ended:
	default:
		return
	}
	s.tracef("the process has ended")
	if err := s.process.die(); err != nil { // no user waits for the remaining calls
		s.faultf("stop the process: %v", err)
	}
	s.discardProcess()
}

// due returns the calls that can proceed now. Polls are returned separately and are not
// affected by the seed's random choices, because their number depends on the speed of the
// machine.
func (s *simulation) due() (due, polls []*visit) {
	if s.process == nil {
		return nil, nil
	}
	now := time.Now()
	for _, v := range s.process.door.visits() {
		if v.polls {
			polls = append(polls, v)
			continue
		}
		if v.due.IsZero() {
			v.due = now.Add(s.delay())
		}
		if !now.Before(v.due) {
			due = append(due, v)
		}
	}
	return due, polls
}

// delay returns how long a call is delayed, which is zero unless the machine is slow at
// the moment.
func (s *simulation) delay() time.Duration {
	if !time.Now().Before(s.slowUntil) || s.rng.IntN(3) > 0 {
		return 0
	}
	return seconds(s.rng, 5)
}

// admit admits one of the calls that are due, admits several into one commit, or crashes
// the process.
func (s *simulation) admit(due []*visit) {
	if s.crashIn > 0 {
		if s.crashIn--; s.crashIn == 0 {
			s.tracef("at the door: %v", due)
			s.crash()
			s.bootAt = time.Now().Add(seconds(s.rng, 20))
			return
		}
	}
	entering := slices.DeleteFunc(slices.Clone(due), func(v *visit) bool { return !v.enters })
	if len(entering) > 1 && s.rng.IntN(3) == 0 {
		s.admitTogether(entering)
		return
	}
	v := due[s.rng.IntN(len(due))]
	s.tracef("%s", v)
	s.process.door.admit(v)
}

// admitTogether admits several calls into one batch commit, as if they had queued up
// while the store was busy.
func (s *simulation) admitTogether(group []*visit) {
	s.rng.Shuffle(len(group), func(i, k int) { group[i], group[k] = group[k], group[i] })
	s.tracef("together: %v", group)
	busy, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.process.store.Update(context.Background(), func(app.Tx) error { <-busy; return nil })
	}()
	synctest.Wait()
	for _, v := range group {
		s.process.door.admit(v)
		synctest.Wait()
	}
	close(busy)
	if err := <-done; err != nil {
		s.faultf("the store can't be kept busy: %v", err)
	}
	time.Sleep(5 * time.Millisecond) // the store waits this long for a batch to fill up
}

// absorb applies the new commits to the ledger, in order.
func (s *simulation) absorb() {
	if s.process == nil {
		return
	}
	var changes []*change
	var postings []*visit
	for _, v := range s.process.door.visits() {
		if v.change != nil {
			changes = append(changes, v.change)
			v.change = nil
		}
		if v.posting != nil {
			postings = append(postings, v)
		}
	}
	slices.SortFunc(changes, func(a, b *change) int { return cmp.Compare(a.order, b.order) })
	s.beginGroup()
	for _, c := range changes {
		s.apply(c)
	}
	if len(changes) > 0 && len(s.faults) == 0 {
		s.checkEvents()
		s.checkNotices(changes)
	}
	for _, v := range postings {
		if err := s.judgePosting(v.posting); err != nil {
			s.faultf("%s: %v", v, err)
		}
		v.posting = nil
	}
}
