package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"molrun/app"
)

// collectPatience is how long a result that can't be kept, for another reason
// than a full disk, is tried to be kept.
const collectPatience = 10 * time.Minute

// collected keeps the result of a task that was done and settles the job.
func (a *attempt) collected(ctx context.Context, o *app.Outcome) {
	begin := time.Now()
	for b := (backoff{time.Second, time.Minute}); ctx.Err() == nil; b.wait(ctx) {
		ending, err := a.collect(ctx, o)
		var no unfit
		switch {
		case err == nil:
			a.settle(ctx, ending)
			return
		case ctx.Err() != nil:
			return
		case errors.As(err, &no):
			a.fetch(ctx)
			a.settle(ctx, a.spoil(o, string(no)))
			return
		case !passing(err) && time.Since(begin) >= collectPatience:
			a.log.Error().Err(err).Msg("the result can't be kept")
			a.fetch(ctx)
			a.settle(ctx, a.spoil(o, "The program ended well, but the server could not keep its result; its log says why. Retry the job."))
			return
		}
		a.log.Warn().Err(err).Msg("the result can't be kept now; will try again")
	}
}

// collect makes the result. The task is gone: once it is its turn to be
// collected the room is free for another, so no more tasks wait for that than
// there is room.
func (a *attempt) collect(ctx context.Context, o *app.Outcome) (ending app.Ending, err error) {
	alg, err := a.algorithm(ctx)
	if passing(err) || ctx.Err() != nil {
		return ending, err
	}
	if err != nil {
		a.log.Warn().Err(err).Msg("no metrics are read")
	}
	c := &collection{
		job:     a.job,
		dirs:    a.r.dirs,
		dir:     filepath.Dir(a.home),
		attempt: a.number,
		outcome: o,
		alg:     alg,
		limit:   a.r.options.MaxFiles,
		record:  a.r.jobs.FinalRecord,
		check:   ctx.Err,
		log:     a.log,
	}
	err = a.r.worker(ctx, func() (err error) {
		a.tell(ctx, event{kind: evFreed})
		if err := a.bringHome(ctx, o); err != nil {
			return fmt.Errorf("bring the result home: %w", err)
		}
		ending, err = c.run()
		return err
	})
	return ending, err
}

// note remembers the work directory of an attempt that was not completed, for
// as long as it is kept. The one of a lost attempt is needed by the next where
// the algorithm resumes, so where none are kept it is not noted.
func (a *attempt) note(e app.Ending, again bool) {
	if completed(e) || again && a.r.kept.keep <= 0 {
		return
	}
	if err := a.r.kept.note(a.id, a.number); err != nil {
		a.log.Warn().Err(err).Msg("a work directory stays until the job is deleted")
	}
}

// leave removes what need not be kept of an attempt that was not completed.
func (a *attempt) leave(ctx context.Context, e app.Ending, again bool) {
	if a.away() {
		if err := a.r.worker(ctx, a.clearAway); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("an attempt's directory can't be removed now from the folder that is shared with the cluster")
		}
	}
	if completed(e) {
		return
	}
	err := a.r.worker(ctx, func() error { return a.r.kept.leave(a.id, a.number, again) })
	if err != nil && ctx.Err() == nil {
		a.log.Warn().Err(err).Msg("a work directory can't be removed now")
	}
}

// completed reports whether the attempt's program did all it had to, and its
// result was kept.
func completed(e app.Ending) bool {
	return e.Failure == nil && e.Outcome != nil && e.Outcome.Cause == app.CauseDone
}

// spoil gives up on the result of a task that was done: the files go back to
// where work directories are looked after.
func (a *attempt) spoil(o *app.Outcome, message string) app.Ending {
	if err := giveBack(a.home); err != nil {
		a.log.Warn().Err(err).Msg("what was collected stays until the job is deleted or retried")
	}
	return app.Ending{Outcome: o, Failure: &app.Failure{Code: app.FailedExit, Message: message, ExitCode: &o.ExitCode}}
}

// failed settles a job whose task ended badly. Its work directory stays for a
// while.
func (a *attempt) failed(ctx context.Context, o *app.Outcome) {
	alg, err := a.algorithm(ctx)
	if err != nil {
		a.log.Warn().Err(err).Msg("the log is not searched for known failures")
	}
	a.fetch(ctx)
	tail := logTail(a.home)
	a.settle(ctx, app.Ending{Outcome: o, Failure: failure(a.job, o, alg, tail)})
}

// settle records how the attempt ended. Only then its files may go: whoever
// finds the attempt without that record settles it by them. Once it is recorded
// the job is no longer ours, and the attempt is told to stop for that reason.
func (a *attempt) settle(ctx context.Context, e app.Ending) {
	stopped := a.stopAsked()
	again := e.Failure == nil && a.job.Private.Lost < a.job.Private.Retries && !stopped
	a.note(e, again)
	err := a.record(ctx, "end", func(ctx context.Context) error {
		return a.r.jobs.Finish(ctx, a.id, a.number, e)
	})
	if err != nil {
		return // ctx ended; the next runner finds the same
	}
	a.leave(ctx, e, again)
	took := time.Since(a.begin)
	switch {
	case e.Failure != nil:
		a.log.Info().Dur("took", took).Str("code", string(e.Failure.Code)).Str("reason", e.Failure.Message).Msg("job failed")
	case e.Outcome != nil && e.Outcome.Cause == app.CauseDone:
		a.log.Info().Dur("took", took).Int64("bytes", e.ResultBytes).Msg("job completed")
	case stopped:
		a.log.Info().Dur("took", took).Msg("job stopped")
	default:
		a.log.Warn().Dur("took", took).Str("reason", e.Lost).Msg("attempt lost")
	}
}
