package eta

import (
	"sync"
	"time"
)

// Running predicts when running jobs will end. The caller chooses the keys. It is safe
// for concurrent use.
type Running struct {
	mu   sync.Mutex
	jobs map[string]*running
}

type running struct {
	started     time.Time
	estimate    Estimate
	basis       string // of the estimate
	first, last Point  // of its progress; a first attempt starts at zero
}

// Begin records the start of an attempt; the first attempt is 1. basis is the basis of e,
// the estimate from past runs.
func (r *Running) Begin(key string, started time.Time, attempt int, e Estimate, basis string) {
	job := &running{started: started, estimate: e, basis: basis}
	if attempt == 1 {
		job.first = Point{At: started}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs == nil {
		r.jobs = map[string]*running{}
	}
	r.jobs[key] = job
}

// Progressed records the progress of a job, from 0 to 1.
func (r *Running) Progressed(key string, now time.Time, fraction float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	job := r.jobs[key]
	if job == nil {
		return
	}
	job.last = Point{At: now, Fraction: fraction}
	if job.first.At.IsZero() || job.last.Fraction < job.first.Fraction {
		job.first = job.last
	}
}

// End records the end of an attempt.
func (r *Running) End(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, key)
}

// Left returns the remaining run time of a job, based on its progress if it has made
// enough and otherwise on past runs. basis "" means that the time is unknown. runs
// reports whether the job is running.
func (r *Running) Left(key string, now time.Time) (seconds float64, basis string, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	job := r.jobs[key]
	if job == nil {
		return 0, "", false
	}
	if seconds, known := LeftBy(job.first, job.last, now); known {
		return seconds, ByProgress, true
	}
	if seconds, known := job.estimate.Left(max(0, now.Sub(job.started).Seconds())); known {
		return seconds, job.basis, true
	}
	return 0, "", true
}
