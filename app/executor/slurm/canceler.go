package slurm

import (
	"context"
	"maps"
	"slices"
	"time"

	"molrun/app/executor/slurm/client"
	"molrun/app/executor/slurm/gather"
)

const (
	// gatherCancels is how long requests are gathered.
	gatherCancels = 50 * time.Millisecond
	// cancelsAtOnce is how many jobs one scancel ends.
	cancelsAtOnce = 200
)

// canceler cancels many jobs with one scancel.
type canceler struct {
	requests chan cancelRequest
	ended    chan struct{}
}

type cancelRequest struct {
	target string
	how    client.Manner
}

// cancel cancels jobs, all in the same manner.
type cancel func(ctx context.Context, how client.Manner, targets []string)

func newCanceler() *canceler {
	return &canceler{requests: make(chan cancelRequest, 1024), ended: make(chan struct{})}
}

// add requests the end of a job.
func (c *canceler) add(ctx context.Context, target string, how client.Manner) error {
	select {
	case c.requests <- cancelRequest{target, how}:
		return nil
	case <-c.ended:
		return gather.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryAdd is like add, but drops the request while there are many. The caller
// repeats it.
func (c *canceler) tryAdd(target string, how client.Manner) {
	select {
	case c.requests <- cancelRequest{target, how}:
	default:
	}
}

// run cancels jobs until ctx ends.
func (c *canceler) run(ctx context.Context, cancel cancel) {
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

// gather collects the requests of a short while. Of two for one job the stronger
// counts.
func (c *canceler) gather(ctx context.Context, first cancelRequest) map[string]client.Manner {
	requested := map[string]client.Manner{first.target: first.how}
	timer := time.NewTimer(gatherCancels)
	defer timer.Stop()
	for {
		select {
		case r := <-c.requests:
			requested[r.target] = max(requested[r.target], r.how)
		case <-timer.C:
			return requested
		case <-ctx.Done():
			return nil
		}
	}
}

func flush(ctx context.Context, cancel cancel, requested map[string]client.Manner) {
	for _, how := range []client.Manner{client.IfQueued, client.Terminate, client.End} {
		targets := slices.Sorted(maps.Keys(requested))
		targets = slices.DeleteFunc(targets, func(t string) bool { return requested[t] != how })
		for piece := range slices.Chunk(targets, cancelsAtOnce) {
			cancel(ctx, how, piece)
		}
	}
}
