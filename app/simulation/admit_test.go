package simulation

import (
	"cmp"
	"context"
	"slices"
	"testing/synctest"
	"time"

	"molrun/app"
)

// settle lets all who are due through the doors, one after another, until
// nobody comes any more at this moment.
func (s *simulation) settle() {
	for n := 0; len(s.faults) == 0; n++ {
		synctest.Wait()
		s.absorb()
		s.collect()
		due, looks := s.due()
		if len(due)+len(looks) == 0 {
			break
		}
		if n == 3000 {
			s.complain("things go on happening for ever, the last is %s", append(due, looks...)[0])
			return
		}
		if len(due) == 0 {
			s.process.door.admit(looks[0])
			continue
		}
		s.admit(due)
	}
	s.ends()
	if !s.quiet() {
		s.could = nil
		return
	}
	s.judgeWaiting()
	s.endRound()
	s.watchQueue()
	s.beginRound()
}

// quiet reports whether nobody waits at a door.
func (s *simulation) quiet() bool { return s.process != nil && len(s.process.door.visits()) == 0 }

// ends takes leave of a process that was asked to end and has.
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
	if err := s.process.die(); err != nil { // what is still at a door has no user who waits for it
		s.complain("at the end of a process: %v", err)
	}
	s.gone()
}

// due gives those who may go on now. Those who only look come after all others,
// and take none of the seed's randomness: how often they come depends on the
// speed of the machine.
func (s *simulation) due() (due, looks []*visit) {
	if s.process == nil {
		return nil, nil
	}
	now := time.Now()
	for _, v := range s.process.door.visits() {
		if v.looks {
			looks = append(looks, v)
			continue
		}
		if v.due.IsZero() {
			v.due = now.Add(s.delay())
		}
		if !now.Before(v.due) {
			due = append(due, v)
		}
	}
	return due, looks
}

// delay is how long a call takes: no time, or when everything is slow, some.
func (s *simulation) delay() time.Duration {
	if !time.Now().Before(s.slowTill) || s.rng.IntN(3) > 0 {
		return 0
	}
	return seconds(s.rng, 5)
}

// admit lets one of those who are due through, or a group of them into one
// commit, or none: the process dies.
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

// admitTogether lets a group into one commit: while the store is busy, they
// line up.
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
		s.complain("the store can't be kept busy: %v", err)
	}
	time.Sleep(5 * time.Millisecond) // the store waits that long for others to come
}

// absorb takes over what was committed, in the order in which it was.
func (s *simulation) absorb() {
	if s.process == nil {
		return
	}
	var changes []*change
	for _, v := range s.process.door.visits() {
		if v.change != nil {
			changes = append(changes, v.change)
			v.change = nil
		}
	}
	slices.SortFunc(changes, func(a, b *change) int { return cmp.Compare(a.order, b.order) })
	for _, c := range changes {
		s.apply(c)
	}
}
