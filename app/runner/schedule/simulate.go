package schedule

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
)

// Bounds of a simulation: jobs that start, and looks at waiting jobs.
const (
	mostStarts = 2_000
	mostLooks  = 200_000
)

// plannedStart is when a job will start, and what that follows from.
type plannedStart struct {
	at    time.Time
	basis string
}

// simulation plays the rounds to come, with the code that plays the real ones.
type simulation struct {
	share   *FairShare
	now     time.Time
	lines   [][]app.Waiting // what waits; each its own copy
	cut     []bool          // a line continues after the listed jobs
	running slotEndings
	times   *runTimes
	basis   etaBasis
	looks   int
	scanned time.Time // when it last looked deep
	starts  map[app.JobID]plannedStart
}

// simulate returns when jobs of the queue start, as far as the ends of all those
// before them are known.
func simulate(s QueueState, queue []app.QueueLine, running *slotEnds, t *runTimes) map[app.JobID]plannedStart {
	if s.Blocked || !s.Turns.Bounded() || running == nil {
		return nil
	}
	sim := &simulation{
		share: s.Turns.Clone(), now: s.At, running: slices.Clone(running.all), basis: running.basis,
		times: t, starts: map[app.JobID]plannedStart{},
	}
	sim.share.Mute()
	heap.Init(&sim.running)
	for _, q := range queue {
		listed := q.Jobs[:min(len(q.Jobs), mostStarts)]
		sim.lines = append(sim.lines, slices.Clone(listed))
		sim.cut = append(sim.cut, len(listed) < q.Count)
	}
	for sim.round() && sim.nextEnd() {
	}
	return sim.starts
}

// slotEnds are when the jobs that have slots end.
type slotEnds struct {
	all   slotEndings
	basis etaBasis
}

// slotEndsOf returns nil if an end is unknown.
func slotEndsOf(s QueueState, t *runTimes) *slotEnds {
	e := &slotEnds{}
	for id, lease := range s.Running {
		left, by := t.left(id, lease.Work)
		if by == "" {
			return nil
		}
		e.basis.add(lease.Work.Class, by)
		e.all = append(e.all, slotEnding{s.At.Add(left), lease})
	}
	return e
}

// from returns the ends with those that should be over by now.
func (e *slotEnds) from(now time.Time) *slotEnds {
	if e == nil {
		return nil
	}
	later := &slotEnds{basis: e.basis, all: slices.Clone(e.all)}
	for i := range later.all {
		if later.all[i].at.Before(now) {
			later.all[i].at = now
		}
	}
	return later
}

// nextEnd advances to the next end of a job; false if none runs, or nothing waits.
func (s *simulation) nextEnd() bool {
	waits := slices.ContainsFunc(s.lines, func(jobs []app.Waiting) bool { return len(jobs) > 0 })
	if !waits || len(s.running) == 0 {
		return false
	}
	s.now = s.running[0].at
	for len(s.running) > 0 && !s.running[0].at.After(s.now) {
		s.share.End(heap.Pop(&s.running).(slotEnding).lease)
	}
	return true
}

// round plays one round as the runner does: a deep one unless there has just been one,
// and a deep one where a shallow one leaves something free. It returns false where the
// simulation ends: at its bounds, or when the end of a job that starts is unknown.
func (s *simulation) round() bool {
	deep := s.now.Sub(s.scanned) >= ScanEvery
	goesOn := s.scan(deep)
	if free := s.share.Scan(s.now, mostStarts, true, nil); goesOn && !deep && !free.NothingFree() {
		return s.scan(true)
	}
	return goesOn
}

// scan looks at the queue and starts jobs.
func (s *simulation) scan(deep bool) bool {
	if deep {
		s.scanned = s.now
	}
	scan := s.share.Scan(s.now, mostStarts, deep, func(app.JobID) bool { return false })
	for _, jobs := range s.lines {
		if !s.visit(scan, jobs) {
			break
		}
	}
	decision := s.share.Next(s.now, "", scan, mostStarts)
	basis := s.basis.text
	goesOn := s.looks < mostLooks && len(s.starts)+len(decision.Start) < mostStarts
	for _, d := range decision.Start {
		e := s.times.estimate(d.Work)
		s.starts[d.ID] = plannedStart{s.now, basis(d.Work.Class)}
		goesOn = s.remove(d.ID) && e.Known() && goesOn
		if e.Known() {
			s.basis.add(d.Work.Class, s.times.basis(d.Work))
			heap.Push(&s.running, slotEnding{s.now.Add(seconds(e.Seconds())), d.Lease})
		}
	}
	for _, refusal := range decision.Impossible {
		goesOn = s.remove(refusal.ID) && goesOn
	}
	return goesOn
}

// visit shows a line to a scan; false if the scan needs no more.
func (s *simulation) visit(scan *Scan, jobs []app.Waiting) bool {
	for _, w := range jobs {
		s.looks++
		switch scan.Visit(w) {
		case app.NextUser:
			return true
		case app.EndVisit:
			return false
		}
	}
	return true
}

// remove takes a job out of its line; false if the line continues with jobs that are
// not listed.
func (s *simulation) remove(id app.JobID) bool {
	for i, jobs := range s.lines {
		n := slices.IndexFunc(jobs[:min(len(jobs), ScanDepth)], func(w app.Waiting) bool { return w.ID == id })
		if n < 0 {
			continue
		}
		copy(jobs[1:n+1], jobs[:n])
		s.lines[i] = jobs[1:]
		return len(jobs) > ScanDepth || !s.cut[i]
	}
	return true
}

// slotEnding is when the slot of a job becomes free.
type slotEnding struct {
	at    time.Time
	lease Lease
}

// slotEndings is a heap, the next first.
type slotEndings []slotEnding

func (e slotEndings) Len() int { return len(e) }
func (e slotEndings) Less(i, j int) bool {
	return cmp.Or(e[i].at.Compare(e[j].at), cmp.Compare(e[i].lease.User.Email, e[j].lease.User.Email)) < 0
}
func (e slotEndings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *slotEndings) Push(x any)   { *e = append(*e, x.(slotEnding)) }
func (e *slotEndings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// etaBasis is what the ends of jobs follow from so far.
type etaBasis struct {
	class string // the only class, if it is the only one
	by    string // the last
	mixed bool   // several classes, or progress and past runs
}

func (b *etaBasis) add(class, by string) {
	if by == eta.ByProgress {
		class = by
	}
	b.mixed = b.mixed || b.by != "" && class != b.class
	b.class, b.by = class, by
}

// text names past runs if they are all of the job's own class. Others are not named:
// they may be of another organization.
func (b etaBasis) text(own string) string {
	switch {
	case b.by == "":
		return "a free slot"
	case b.mixed || b.class != own && b.by != eta.ByProgress:
		return "progress and past runs of the jobs before it"
	case b.by == eta.ByProgress:
		return "progress of the jobs before it"
	}
	return b.by
}
