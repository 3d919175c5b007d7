package app

import (
	"maps"
	"sync"
	"time"

	"molrun/app/job/eta"
)

// liveStates are the volatile states of jobs, kept in memory only: the progress
// of running ones, and why queued ones wait.
type liveStates struct {
	running eta.Running // when they will end

	mu       sync.Mutex
	progress map[JobID]Progress
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

// begin notes that a job runs.
func (l *liveStates) begin(j *Job, e eta.Estimate) {
	l.running.Begin(string(j.ID), j.StartedAt.Time, j.Attempts, e, e.Basis(j.Type, j.Version))
}

// end notes that an attempt is over.
func (l *liveStates) end(id JobID) {
	l.running.End(string(id))
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.progress, id)
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
	if p.Basis == "" {
		l.running.Progressed(string(id), now, p.Fraction)
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

// waiting returns why a queued job waits, and its place in the queue of an executor,
// if it is in one.
func (l *liveStates) waiting(id JobID, now time.Time) (why eta.Reason, q eta.Queue, inQueue bool) {
	l.mu.Lock()
	outlooks := l.outlooks
	why, known := l.reasons[id]
	l.mu.Unlock()
	for _, o := range outlooks {
		place, rest, ok := o.Queue(id, now)
		if !ok {
			continue
		}
		if q, inQueue = place, true; !known {
			why = rest
		}
	}
	q.BlockedBy = why.By
	return why, q, inQueue
}
