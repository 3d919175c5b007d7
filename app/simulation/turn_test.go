package simulation

import (
	"fmt"
	"time"

	"molrun/app"
	"molrun/app/placement"
)

const (
	// startsWithin is how soon a job has to start that fits. It is far below
	// the time after which the runner looks again though nothing woke it.
	startsWithin = 2 * time.Second
	// retriedWithin is how soon the runner tries again what has failed, and
	// seenWithin how soon it has looked at all tasks after a start.
	retriedWithin = 40 * time.Second
	seenWithin    = 6 * time.Second
)

type user struct{ organization, email string }

func userOf(j *app.Job) user { return user{j.Organization, j.Email} }

// round is what happens between two moments at which all is quiet.
type round struct {
	queue   map[app.JobID]*entry // as it was at the first
	started []app.JobID
	free    placement.Resources
	ended   int // jobs that have ended meanwhile
}

func (r *round) claimed(id app.JobID) { r.started = append(r.started, id) }

// room is what claimed jobs leave.
func (s *simulation) room(holds func(*entry) bool) placement.Resources {
	left := placement.Resources{
		CPUs: s.machine.capacity.CPUs, MemoryBytes: s.machine.capacity.MemoryBytes, GPUs: len(s.machine.capacity.GPUs),
	}
	for _, e := range s.ledger.jobs {
		if e.Private.Claimed && holds(e) {
			left = without(left, e.Private.Needs)
		}
	}
	return left
}

func without(a, b placement.Resources) placement.Resources {
	return placement.Resources{CPUs: a.CPUs - b.CPUs, MemoryBytes: a.MemoryBytes - b.MemoryBytes, GPUs: a.GPUs - b.GPUs}
}

// fits reports whether the room holds the needs. What is not needed may lack.
func fits(needs, room placement.Resources) bool {
	return (needs.CPUs == 0 || needs.CPUs <= room.CPUs) &&
		(needs.MemoryBytes == 0 || needs.MemoryBytes <= room.MemoryBytes) &&
		(needs.GPUs == 0 || needs.GPUs <= room.GPUs)
}

// judgeRoom looks whether more is booked than there is. A job whose task is
// over holds nothing any more.
func (s *simulation) judgeRoom() {
	now := time.Now()
	holds := func(e *entry) bool {
		task := s.machine.find(e.Private.Token)
		return task == nil || task.lives(now)
	}
	if left := s.room(holds); left.CPUs < 0 || left.MemoryBytes < 0 || left.GPUs < 0 {
		s.complain("more is booked than there is: %+v", left)
	}
	devices := map[string]string{}
	for _, e := range s.ledger.jobs {
		if !e.Private.Claimed || !holds(e) {
			continue
		}
		for _, d := range e.Private.GPUs {
			if devices[d] != "" {
				s.complain("the device %s is booked for two jobs", d)
			}
			devices[d] = e.Name
		}
	}
}

// calm reports whether the runner has had time to come to rest since something
// was out of order.
func (s *simulation) calm() bool {
	return s.process != nil && s.stopping == nil && time.Now().After(s.calmFrom)
}

// notCalmBefore notes that something is out of order until then.
func (s *simulation) notCalmBefore(t time.Time) {
	if t.After(s.calmFrom) {
		s.calmFrom = t
	}
}

// watchQueue notes at a quiet moment which jobs could start.
func (s *simulation) watchQueue() {
	now := time.Now()
	could := map[app.JobID]time.Time{}
	free := s.room(func(*entry) bool { return true })
	for id, e := range s.ledger.jobs {
		if !e.waits() || !s.mayStart(e, free) {
			continue
		}
		if could[id] = s.could[id]; could[id].IsZero() {
			could[id] = now
		}
	}
	s.could = could
}

// mayStart reports whether nothing can keep the job from starting: it fits, and
// it does so beside any other that has waited so long that room is kept for it.
func (s *simulation) mayStart(e *entry, free placement.Resources) bool {
	if !fits(e.Private.Needs, free) {
		return false
	}
	for _, other := range s.ledger.jobs {
		if other != e && other.waits() && s.patient(other) && other.Priority >= e.Priority &&
			!fits(e.Private.Needs, without(free, other.Private.Needs)) {
			return false
		}
	}
	return true
}

// patient reports whether room may be kept for the job. One that was cancelled
// and tried again may have been passed over before.
func (s *simulation) patient(e *entry) bool {
	return time.Since(e.made) >= s.patience-startsWithin
}

// judgeQueue complains of jobs that could have started long ago.
func (s *simulation) judgeQueue() {
	if !s.calm() {
		s.could = nil
		return
	}
	s.judgeStops()
	free := s.room(func(*entry) bool { return true })
	for _, e := range s.ledger.sorted((*entry).waits) {
		since := s.could[e.ID]
		if since.IsZero() || time.Since(since) <= startsWithin || !s.mayStart(e, free) {
			continue
		}
		s.complain("%s/%s could start for %v and does not", e.Organization, e.Name, time.Since(since))
	}
}

// judgeStops complains of tasks whose end was asked for long ago, but not of
// the machine.
func (s *simulation) judgeStops() {
	now := time.Now()
	for _, e := range s.ledger.sorted(func(e *entry) bool { return e.Private.Stop }) {
		task := s.machine.find(e.Private.Token)
		if task != nil && task.lives(now) && now.Sub(e.stopped) > startsWithin && !s.machine.stopAsked(e.Private.Token) {
			s.complain("%s/%s was cancelled %v ago and nobody stops it", e.Organization, e.Name, now.Sub(e.stopped))
		}
	}
}

// beginRound takes note of the queue before anything happens.
func (s *simulation) beginRound() {
	s.round = round{queue: map[app.JobID]*entry{}, free: s.room(func(*entry) bool { return true })}
	if !s.calm() {
		s.round.queue = nil
		return
	}
	for _, e := range s.ledger.sorted((*entry).waits) {
		s.round.queue[e.ID] = e
	}
}

// endRound looks whether turns were fair: whoever comes first and needs no more
// than another one has started no later.
func (s *simulation) endRound() {
	if s.round.queue == nil || !s.calm() {
		return
	}
	for _, e := range s.round.queue {
		if s.patient(e) {
			return // room may be kept for it, then other rules hold
		}
	}
	for _, id := range s.round.started {
		w := s.round.queue[id]
		if w == nil || s.ledger.jobs[id] == nil {
			continue
		}
		for _, v := range s.firsts() {
			if fits(v.Private.Needs, w.Private.Needs) {
				s.judgeTurn(v, w)
			}
		}
	}
}

// firsts gives of every user and priority the job that has waited all the time
// and was the first of its line.
func (s *simulation) firsts() []*entry {
	type line struct {
		user
		priority int
	}
	first := map[line]*entry{}
	for _, e := range s.round.queue {
		l := line{userOf(&e.Job), e.Priority}
		if first[l] == nil || e.ID < first[l].ID {
			first[l] = e
		}
	}
	return s.ledger.sorted(func(e *entry) bool {
		v := first[line{userOf(&e.Job), e.Priority}]
		return v != nil && v.ID == e.ID && e.waits() && e.Attempts == v.Attempts
	})
}

// judgeTurn compares v, which waits, with w, which has started.
func (s *simulation) judgeTurn(v, w *entry) {
	a, b := userOf(&w.Job), userOf(&v.Job)
	reason := ""
	switch {
	case v.Priority > w.Priority:
		reason = "has a higher priority"
	case v.Priority < w.Priority:
	case a == b && v.ID < w.ID:
		reason = "was there before"
	case a != b && s.held(b) < s.held(a)-1 && s.fitsWhereverFit(v, a):
		reason = fmt.Sprintf("belongs to one who runs %d jobs, not %d", s.held(b), s.held(a))
	}
	if reason != "" {
		s.complain("%s/%s has started, %s/%s has not and %s", w.Organization, w.Name, v.Organization, v.Name, reason)
	}
}

// held counts the claimed jobs of a user.
func (s *simulation) held(u user) (n int) {
	for _, e := range s.ledger.jobs {
		if e.Private.Claimed && userOf(&e.Job) == u {
			n++
		}
	}
	return n
}

// fitsWhereverFit reports whether v could have started in the place of any job
// that the user has started in this round, with as many jobs running as now. The
// last of them was chosen when the user had one job less than now. What has
// ended meanwhile counts no more where the others needed its room.
func (s *simulation) fitsWhereverFit(v *entry, u user) bool {
	for _, id := range s.round.started {
		w := s.round.queue[id]
		if w == nil {
			return false
		}
		if userOf(&w.Job) != u {
			continue
		}
		before := s.round.ended > 1 || s.round.ended == 1 && fits(w.Private.Needs, s.round.free)
		if before || w.Priority != v.Priority || !fits(v.Private.Needs, w.Private.Needs) {
			return false
		}
	}
	return true
}
