package slurm

import (
	"context"
	"fmt"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/task"
)

// Start submits the task, together with others that come now with the same
// request. It is idempotent: a repeated call finds the first submission.
func (e *Executor) Start(ctx context.Context, t app.Task) (app.Handle, error) {
	h, err := e.start(ctx, t)
	if err != nil {
		return "", fmt.Errorf("start task %s/%d: %w", t.Job, t.Attempt, err)
	}
	return h, nil
}

func (e *Executor) start(ctx context.Context, t app.Task) (app.Handle, error) {
	r, submitted, err := e.lists.find(t.Token)
	switch {
	case err != nil:
		return "", fault.Errorf(fault.Unavailable, "The folder that is shared with the cluster can't be read: %v", err)
	case submitted:
		return numbered(r, e.lists.number(r.Name)).encode(), nil
	case task.Exists(t.Dir, task.RunFile) || task.Exists(t.Dir, task.OutcomeFile):
		return "", nil // it ran
	}
	asked, err := e.submitter.requestOf(ctx, t)
	if err != nil {
		return "", err
	}
	h, known, err := e.gatherer.Add(ctx, e.end, asked, t)
	if known {
		return h, err
	}
	// The submission continues, and may have written its list already.
	if r, submitted, _ := e.lists.find(t.Token); submitted {
		return numbered(r, "").encode(), nil
	}
	return "", nil
}
