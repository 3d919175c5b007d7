package slurm

import (
	"context"
	"time"
)

// gatherCancels is how long requests are collected.
const gatherCancels = 50 * time.Millisecond

// canceler collects requests to cancel jobs, so that one query of Slurm's queue and a few
// calls of scancel serve many requests.
type canceler struct {
	requests chan cancelRequest
	ended    chan struct{}
}

type cancelRequest struct {
	job jobRecord
	how cancelManner
}

// cancel cancels jobs in the given manner.
type cancel func(ctx context.Context, how cancelManner, jobs []jobRecord)

func newCanceler() *canceler {
	return &canceler{requests: make(chan cancelRequest, 1024), ended: make(chan struct{})}
}

// requestEnd requests the end of a job.
func (c *canceler) requestEnd(ctx context.Context, job jobRecord, how cancelManner) error {
	select {
	case c.requests <- cancelRequest{job, how}:
		return nil
	case <-c.ended:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryAdd is like requestEnd, but drops the request when the queue of requests is full.
// The caller repeats it.
func (c *canceler) tryAdd(job jobRecord, how cancelManner) {
	select {
	case c.requests <- cancelRequest{job, how}:
	default:
	}
}

// cancelUntilDone processes requests until ctx ends.
func (c *canceler) cancelUntilDone(ctx context.Context, cancel cancel) {
	defer close(c.ended)
	for {
		select {
		case first := <-c.requests:
			flush(ctx, cancel, c.gather(ctx, first))
		case <-ctx.Done():
			return
		}
	}
}

// gather collects requests for a short while. For two requests for one job, the stronger
// manner wins.
func (c *canceler) gather(ctx context.Context, first cancelRequest) map[jobKey]cancelRequest {
	requested := map[jobKey]cancelRequest{keyOf(first.job): first}
	timer := time.NewTimer(gatherCancels)
	defer timer.Stop()
	for {
		select {
		case r := <-c.requests:
			r.how = max(r.how, requested[keyOf(r.job)].how)
			requested[keyOf(r.job)] = r
		case <-timer.C:
			return requested
		case <-ctx.Done():
			return nil
		}
	}
}

func flush(ctx context.Context, cancel cancel, requested map[jobKey]cancelRequest) {
	for _, how := range []cancelManner{cancelIfQueued, cancelTerminate, cancelEnd} {
		var jobs []jobRecord
		for _, r := range requested {
			if r.how == how {
				jobs = append(jobs, r.job)
			}
		}
		if len(jobs) > 0 {
			cancel(ctx, how, jobs)
		}
	}
}
