package app

import (
	"maps"
	"sync"
	"time"

	"molrun/app/job/eta"
)

// liveStates holds the state of jobs that is kept only in memory: the progress of running
// jobs, and the reasons why queued jobs wait.
type liveStates struct {
	running eta.Running // expected end times

	mu        sync.Mutex
	progress  map[JobID]Progress
	reasons   map[JobID]eta.Reason
	forecasts map[string]QueueForecast // by executor; the map is replaced, never modified
}

// QueueForecast forecasts when the jobs of an executor's queue start.
type QueueForecast interface {
	// Queue returns the position of a job, and why it waits if that follows from its
	// position. It returns false for an unknown job.
	Queue(id JobID, now time.Time) (eta.Queue, eta.Reason, bool)
	// Forecast returns when jobs of one user and priority would start if they were queued
	// now, in this order. It can take a tenth of a second.
	Forecast(now time.Time, jobs []Waiting) eta.Forecast
}

// jobStarted records that a job has started.
func (l *liveStates) jobStarted(j *Job, e eta.Estimate) {
	l.running.Begin(string(j.ID), j.StartedAt.Time, j.Attempts, e, e.Basis(j.Type, j.Version))
}

// attemptEnded records that an attempt has ended.
func (l *liveStates) attemptEnded(id JobID) {
	l.running.End(string(id))
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.progress, id)
}

// setProgress records the progress of a job and reports whether it has changed.
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

func (l *liveStates) setForecast(executor string, o QueueForecast) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]QueueForecast{}
	maps.Copy(all, l.forecasts)
	all[executor] = o
	l.forecasts = all
}

// forecast returns the latest queue forecast of an executor, or nil if there is none yet.
func (l *liveStates) forecast(executor string) QueueForecast {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forecasts[executor]
}

// waiting returns why a queued job waits and, if it is in an executor's queue, its
// position there.
func (l *liveStates) waiting(id JobID, now time.Time) (why eta.Reason, q eta.Queue, inQueue bool) {
	l.mu.Lock()
	outlooks := l.forecasts
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
