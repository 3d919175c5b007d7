package slurm

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/task"
)

const (
	// cancelFor is how long tasks to be ended are gathered.
	cancelFor = 50 * time.Millisecond
	// cancelsAtOnce is how many jobs one scancel ends.
	cancelsAtOnce = 200
	// stopMargin is what a task gets to end beyond the grace of its program,
	// before Slurm ends it.
	stopMargin = 15 * time.Second
)

// manner is how a job is ended.
type manner int

const (
	drop manner = iota // if it still waits
	ask                // molrun task is asked, which ends its program in good order
	end                // by Slurm; for a job that waits this is at once
)

// Stop notes that the task's end is wanted and has scancel called. That this
// has an effect only Status tells, so it is repeated till then; and it has to
// be, where the job is not known yet.
func (e *Executor) Stop(ctx context.Context, t app.Task) error {
	asked, err := task.AskStop(t.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Errorf(fault.Unavailable, "The folder that is shared with the cluster can't be written: %v", err)
	}
	e.mu.Lock()
	r, known := e.latest[t.Token]
	e.mu.Unlock()
	e.hurry()
	if !known || states[r.state].over() {
		return nil // there is none, or the next look finds it
	}
	how := end
	if states[r.state] == running && asked <= e.options.Grace+stopMargin {
		how = ask
	}
	return e.canceler.add(ctx, r.target(), how)
}

// canceler calls scancel for many jobs at once.
type canceler struct {
	cancel   func(context.Context, manner, []string)
	requests chan cancelRequest
	ended    chan struct{}
}

type cancelRequest struct {
	target string
	how    manner
}

func newCanceler(cancel func(context.Context, manner, []string)) *canceler {
	return &canceler{cancel: cancel, requests: make(chan cancelRequest, 1024), ended: make(chan struct{})}
}

// add has a job ended soon.
func (c *canceler) add(ctx context.Context, target string, how manner) error {
	select {
	case c.requests <- cancelRequest{target, how}:
		return nil
	case <-c.ended:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryAdd does so unless there is much to do; whoever wants it asks again.
func (c *canceler) tryAdd(target string, how manner) {
	select {
	case c.requests <- cancelRequest{target, how}:
	default:
	}
}

// run ends jobs until ctx ends.
func (c *canceler) run(ctx context.Context) {
	defer close(c.ended)
	for {
		select {
		case first := <-c.requests:
			c.flush(ctx, c.gather(ctx, first))
		case <-ctx.Done():
			return
		}
	}
}

// gather takes what comes in a short while. Of two wishes for one job the
// stronger counts.
func (c *canceler) gather(ctx context.Context, first cancelRequest) map[string]manner {
	wishes := map[string]manner{first.target: first.how}
	timer := time.NewTimer(cancelFor)
	defer timer.Stop()
	for {
		select {
		case r := <-c.requests:
			wishes[r.target] = max(wishes[r.target], r.how)
		case <-timer.C:
			return wishes
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *canceler) flush(ctx context.Context, wishes map[string]manner) {
	for _, how := range []manner{drop, ask, end} {
		targets := slices.Sorted(maps.Keys(wishes))
		targets = slices.DeleteFunc(targets, func(t string) bool { return wishes[t] != how })
		for piece := range slices.Chunk(targets, cancelsAtOnce) {
			c.cancel(ctx, how, piece)
		}
	}
}

// cancelJobs calls scancel. Its result says nothing: it fails for one of many
// jobs and succeeds for jobs that are not there.
func (e *Executor) cancelJobs(ctx context.Context, how manner, targets []string) {
	words := targets
	switch how {
	case drop:
		words = append([]string{"--state=PENDING"}, targets...)
	case ask:
		words = append([]string{"--signal=TERM", "--batch"}, targets...)
	}
	if _, err := e.slurm.run(ctx, "", "scancel", words...); err != nil && ctx.Err() == nil {
		e.log("scancel failed; it is tried again", "jobs", len(targets), "err", err)
	}
	e.hurry()
}
