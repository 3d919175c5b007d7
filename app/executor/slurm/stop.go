package slurm

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/task"
)

// stopMargin is the time a task gets in addition to its program's grace before Slurm ends
// it.
const stopMargin = 15 * time.Second

// Stop records the request to end the task and has scancel called. Only Status shows
// whether it took effect, so the caller must repeat it until then, in particular if the
// job is not known yet.
func (e *Executor) Stop(ctx context.Context, t app.Task) error {
	asked, err := task.RequestStop(t.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Errorf(fault.Unavailable, "The folder shared with the cluster is not writable: %v", err)
	}
	if runsInWorker(t) {
		return e.stopRow(ctx, t, asked)
	}
	r, known := e.latest.of(t.Token)
	e.submissions.expectChange()
	if !known || r.Kind().Over() {
		return nil // Slurm has no job for it, or the next Status finds one
	}
	how := cancelEnd
	if r.Kind() == kindRunning && asked <= e.options.Grace+stopMargin {
		how = cancelTerminate
	}
	return e.canceler.requestEnd(ctx, r, how)
}

// cancelJobs cancels the jobs that still have these IDs. A controller that crashes can
// reuse an ID for another user's job, so IDs are looked up by name right before scancel
// is called, and scancel checks again if it can. If a job is not found, the caller
// retries.
func (e *Executor) cancelJobs(ctx context.Context, how cancelManner, jobs []jobRecord) {
	queue, err := e.client.Queue(ctx, e.options.Prefix)
	if err != nil {
		if ctx.Err() == nil {
			e.options.Log("could not cancel Slurm jobs, squeue failed; retrying", "jobs", len(jobs), "err", err)
		}
		return
	}
	for _, call := range scancels(queue, jobs, how) {
		if err := e.client.Cancel(ctx, call.how, call.name, call.targets); err != nil && ctx.Err() == nil {
			e.options.Log("scancel failed; retrying", "jobs", len(call.targets), "err", err)
		}
	}
	e.submissions.expectChange()
}

// latest holds Slurm's last record of each task that is not over, by token, for Stop. Old
// records are dropped.
type latest struct {
	ttl time.Duration

	mu      sync.Mutex
	records map[string]seenRecord
}

type seenRecord struct {
	jobRecord
	at time.Time
}

// put adds a record that Slurm reported at that time.
func (l *latest) put(token string, r jobRecord, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Kind().Over() {
		delete(l.records, token)
		return
	}
	l.records[token] = seenRecord{r, at}
}

func (l *latest) of(token string) (jobRecord, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[token]
	if time.Since(r.at) > l.ttl {
		return jobRecord{}, false
	}
	return r.jobRecord, true
}

func (l *latest) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.records, func(_ string, r seenRecord) bool { return time.Since(r.at) > l.ttl })
}
