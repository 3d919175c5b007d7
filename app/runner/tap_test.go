package runner

import (
	"context"

	"molrun/app"
)

// tap stands between a runner and the service and makes calls fail.
type tap struct {
	Jobs
	source, handle, finished, claimed func() error
}

func (w *tap) InputPath(src app.Reference) (string, error) {
	if w.source != nil {
		if err := w.source(); err != nil {
			return "", err
		}
	}
	return w.Jobs.InputPath(src)
}

func (w *tap) SetHandle(ctx context.Context, id app.JobID, attempt int, h app.Handle) error {
	if w.handle != nil {
		if err := w.handle(); err != nil {
			return err
		}
	}
	return w.Jobs.SetHandle(ctx, id, attempt, h)
}

func (w *tap) Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error {
	if w.finished != nil {
		if err := w.finished(); err != nil {
			return err
		}
	}
	return w.Jobs.Finish(ctx, id, attempt, e)
}

// Claim loses the answer, not the claim.
func (w *tap) Claim(ctx context.Context, id app.JobID, gpus []string) (*app.Job, error) {
	j, err := w.Jobs.Claim(ctx, id, gpus)
	if err == nil && w.claimed != nil {
		err = w.claimed()
	}
	return j, err
}
