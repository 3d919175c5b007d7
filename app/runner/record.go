package runner

import (
	"context"
	"errors"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

// backoff gives growing pauses between tries.
type backoff struct{ next, most time.Duration }

func (b *backoff) wait(ctx context.Context) {
	sleep(ctx, b.next)
	b.next = min(2*b.next, b.most)
}

func recordBackoff() backoff { return backoff{100 * time.Millisecond, 30 * time.Second} }

// record changes the job's record and tries until that is done: what happened
// to a task must not be forgotten because the disk is full. An error says that
// ctx has ended.
func (a *attempt) record(ctx context.Context, what string, change func(context.Context) error) error {
	for b := recordBackoff(); ; b.wait(ctx) {
		err := bounded(ctx, change)
		switch {
		case err == nil || errors.Is(err, fault.NotFound): // of a deleted job nothing is to be told
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		a.log.Warn().Err(err).Str("change", what).Msg("the job's record can't be changed; will try again")
	}
}

// claim takes the job from the queue. It gives nil where the job waits no
// longer, and where ctx ends.
func (a *attempt) claim(ctx context.Context) (j *app.Job) {
	doubt := false // a claim without an answer may have been recorded
	for b := recordBackoff(); ; b.wait(ctx) {
		err := bounded(ctx, func(ctx context.Context) (err error) {
			j, err = a.r.jobs.Claim(ctx, a.id, a.gpus)
			if doubt && errors.Is(err, fault.NotFound) {
				j, err = a.ownClaim(ctx)
			}
			return err
		})
		switch {
		case err == nil:
			return j
		case errors.Is(err, fault.NotFound) || ctx.Err() != nil:
			return nil
		}
		doubt = true
		a.r.options.Log.Warn().Err(err).Str("job", string(a.id)).Msg("the job can't be claimed; will try again")
	}
}

// ownClaim finds the job among the claimed ones. As nobody else claims jobs,
// the claim is this attempt's.
func (a *attempt) ownClaim(ctx context.Context) (*app.Job, error) {
	jobs, err := a.r.jobs.Active(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.ID == a.id {
			return j, nil
		}
	}
	return nil, fault.NotFound
}

// bounded runs one call of the service with the time it may take.
func bounded(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	return call(ctx)
}
