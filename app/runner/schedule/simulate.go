package schedule

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
)

// Limits of a simulation: started jobs, and visits of waiting jobs.
const (
	maxStarts = 2_000
	maxVisits = 200_000
)

// plannedStart is when a job will start, and the basis of that estimate.
type plannedStart struct {
	at    time.Time
	basis string
}

// simulation runs future scheduling rounds with the code of the real ones.
type simulation struct {
	share   *FairShare
	now     time.Time
	lines   [][]app.Waiting // waiting jobs; each line is a copy
	cut     []bool          // whether a line continues after the listed jobs
	running slotEndings
	times   *runTimes
	basis   etaBasis
	looks   int
	scanned time.Time // time of the last deep scan
	starts  map[app.JobID]plannedStart
}

// simulate returns when queued jobs start, as far as the end times of all jobs before
// them are known.
func simulate(s QueueState, queue []app.QueueLine, running *slotEnds, t *runTimes) map[app.JobID]plannedStart {
	if s.Blocked || !s.Share.Bounded() || running == nil {
		return nil
	}
	sim := &simulation{
		share: s.Share.Clone(), now: s.At, running: slices.Clone(running.all), basis: running.basis,
		times: t, starts: map[app.JobID]plannedStart{},
	}
	sim.share.Mute()
	heap.Init(&sim.running)
	for _, q := range queue {
		listed := q.Jobs[:min(len(q.Jobs), maxStarts)]
		sim.lines = append(sim.lines, slices.Clone(listed))
		sim.cut = append(sim.cut, len(listed) < q.Count)
	}
	for sim.round() && sim.nextEnd() {
	}
	return sim.starts
}

// slotEnds holds the end times of the jobs that have slots.
type slotEnds struct {
	all   slotEndings
	basis etaBasis
}

// slotEndsOf returns the end times, or nil if one is unknown.
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

// from returns the end times, with those already past moved to now.
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

// nextEnd advances to the next end of a job. It returns false if no job runs or none
// waits.
func (s *simulation) nextEnd() bool {
	waits := slices.ContainsFunc(s.lines, func(jobs []app.Waiting) bool { return len(jobs) > 0 })
	if !waits || len(s.running) == 0 {
		return false
	}
	s.now = s.running[0].at
	for len(s.running) > 0 && !s.running[0].at.After(s.now) {
		s.share.ReleaseSlot(heap.Pop(&s.running).(slotEnding).lease)
	}
	return true
}

// round simulates one round as the runner does it: a deep one unless there has just been
// one, and a second, deep one if a shallow one leaves resources free. It returns false
// where the simulation ends: at its limits, or when the end time of a started job is
// unknown.
func (s *simulation) round() bool {
	deep := s.now.Sub(s.scanned) >= ScanEvery
	goesOn := s.scan(deep)
	if free := s.share.Scan(s.now, maxStarts, true, nil); goesOn && !deep && !free.NothingFree() {
		return s.scan(true)
	}
	return goesOn
}

// scan scans the queue and starts jobs.
func (s *simulation) scan(deep bool) bool {
	if deep {
		s.scanned = s.now
	}
	scan := s.share.Scan(s.now, maxStarts, deep, func(app.JobID) bool { return false })
	for _, jobs := range s.lines {
		if !s.visit(scan, jobs) {
			break
		}
	}
	decision := s.share.Next(s.now, "", scan, maxStarts)
	basis := s.basis.text
	goesOn := s.looks < maxVisits && len(s.starts)+len(decision.Start) < maxStarts
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

// visit passes a line to a scan. It returns false if the scan needs no more jobs.
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

// remove removes a job from its line. It returns false if the line continues with jobs
// that are not listed.
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

// slotEnding is when a job's slot becomes free.
type slotEnding struct {
	at    time.Time
	lease Lease
}

// slotEndings is a heap ordered by time.
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

// etaBasis accumulates the basis of the estimated end times.
type etaBasis struct {
	class string // the class, if there is only one
	by    string // the last basis added
	mixed bool   // several classes, or progress and past runs
}

func (b *etaBasis) add(class, by string) {
	if by == eta.ByProgress {
		class = by
	}
	b.mixed = b.mixed || b.by != "" && class != b.class
	b.class, b.by = class, by
}

// text mentions past runs only if all of them are of the job's own class. Others might
// belong to another organization.
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
