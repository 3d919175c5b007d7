package app

import (
	"maps"
	"sync"
	"time"

	"molrun/app/eta"
)

// liveStates are the volatile states of jobs, kept in memory only: the progress
// of running ones, and why queued ones wait.
type liveStates struct {
	mu       sync.Mutex
	progress map[JobID]Progress
	running  map[JobID]*runningJob
	reasons  map[JobID]eta.Reason
	outlooks map[string]Outlook // by executor; the map is never changed
}

// Outlook says where the jobs of an executor's queue stand.
type Outlook interface {
	// Queue returns the place of a job, and why it waits as far as that follows
	// from its place; false if it does not know the job.
	Queue(id JobID, now time.Time) (eta.Queue, eta.Reason, bool)
	// Foresee says how jobs of one user and priority would fare that were queued
	// now, in this order. It may take a tenth of a second.
	Foresee(now time.Time, jobs []Waiting) eta.Forecast
}

// runningJob is what tells when a job will end.
type runningJob struct {
	started     time.Time
	estimate    eta.Estimate
	basis       string    // of the estimate
	first, last eta.Point // of its progress; a first attempt begins with none
}

// begin notes that a job runs.
func (l *liveStates) begin(j *Job, e eta.Estimate) {
	r := &runningJob{started: j.StartedAt.Time, estimate: e, basis: e.Basis(j.Type, j.Version)}
	if j.Attempts == 1 {
		r.first = eta.Point{At: r.started}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = map[JobID]*runningJob{}
	}
	l.running[j.ID] = r
}

// end notes that an attempt is over.
func (l *liveStates) end(id JobID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.progress, id)
	delete(l.running, id)
}

// left returns how long a job still runs, by its progress if there is enough, else by
// past runs; basis "" is unknown. It has not begun if it does not run.
func (l *liveStates) left(id JobID, now time.Time) (seconds float64, basis string, runs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.running[id]
	if r == nil {
		return 0, "", false
	}
	if seconds, known := eta.LeftBy(r.first, r.last, now); known {
		return seconds, eta.ByProgress, true
	}
	if seconds, known := r.estimate.Left(max(0, now.Sub(r.started).Seconds())); known {
		return seconds, r.basis, true
	}
	return 0, "", true
}

// setProgress reports whether it is new.
func (l *liveStates) setProgress(id JobID, p Progress, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.progress == nil {
		l.progress = map[JobID]Progress{}
	}
	old, known := l.progress[id]
	l.progress[id] = p
	if r := l.running[id]; r != nil && p.Basis == "" {
		r.last = eta.Point{At: now, Fraction: p.Fraction}
		if r.first.At.IsZero() || r.last.Fraction < r.first.Fraction {
			r.first = r.last
		}
	}
	return !known || old != p
}

func (l *liveStates) setReasons(reasons map[JobID]eta.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = maps.Clone(reasons)
}

func (l *liveStates) setOutlook(executor string, o Outlook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]Outlook{}
	maps.Copy(all, l.outlooks)
	all[executor] = o
	l.outlooks = all
}

// outlook returns the last outlook of an executor, nil if there is none yet.
func (l *liveStates) outlook(executor string) Outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outlooks[executor]
}

// waiting returns why a queued job waits, and its place in the queue.
func (l *liveStates) waiting(id JobID, now time.Time) (why eta.Reason, q eta.Queue) {
	l.mu.Lock()
	outlooks := l.outlooks
	why, known := l.reasons[id]
	l.mu.Unlock()
	for _, o := range outlooks {
		place, rest, ok := o.Queue(id, now)
		if !ok {
			continue
		}
		if q = place; !known {
			why = rest
		}
	}
	q.BlockedBy = why.By
	return why, q
}
