package eta

import (
	"sync"
	"time"
)

// Running predicts when running jobs will end, under keys of the caller's. It is safe for
// concurrent use.
type Running struct {
	mu   sync.Mutex
	jobs map[string]*running
}

type running struct {
	started     time.Time
	estimate    Estimate
	basis       string // of the estimate
	first, last Point  // of its progress; a first attempt begins with none
}

// Begin notes that an attempt runs, the first of its job or a later one. An estimate of past runs has a basis.
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

// Progressed notes how much of a job is done, from 0 to 1.
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

// End notes that an attempt is over.
func (r *Running) End(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, key)
}

// Left returns how long a job still runs, by its progress if there is enough, else by
// past runs; basis "" is unknown. It has not begun if it does not run.
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
