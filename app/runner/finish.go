package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/results"
	"molrun/app/base/fault"
	"molrun/app/runner/result"
)

// collectTimeout is how long the runner retries storing a result when the error is not
// temporary.
const collectTimeout = 10 * time.Minute

// collect stores the result of a completed task and finishes the attempt.
func (a *attempt) collect(ctx context.Context, o *app.Outcome) {
	begin := time.Now()
	for b := (backoff{time.Second, time.Minute}); ctx.Err() == nil; b.wait(ctx) {
		ending, err := a.keepResult(ctx, o)
		var invalid result.InvalidOutputError
		var missing result.MissingOutputError
		switch {
		case err == nil:
			a.finish(ctx, ending)
			return
		case ctx.Err() != nil:
			return
		case errors.As(err, &invalid):
			a.finishWithoutResult(ctx, o, app.FailedExit, string(invalid))
			return
		case errors.As(err, &missing):
			code, message := missingOutput(o, string(missing))
			a.finishWithoutResult(ctx, o, code, message)
			return
		case !temporary(err) && time.Since(begin) >= collectTimeout:
			a.log.Error().Err(err).Msg("could not store the result")
			a.finishWithoutResult(ctx, o, app.FailedExit, "The program succeeded, but the server could not store its result; see the server log. Retry the job.")
			return
		}
		a.log.Warn().Err(err).Msg("could not store the result; retrying")
	}
}

// keepResult stores the result. The task has exited, but its slot on the executor is
// released only once it gets a slot for file transfer (withSlot), so that no more tasks
// wait for collection than the executor has slots.
func (a *attempt) keepResult(ctx context.Context, o *app.Outcome) (ending app.Ending, err error) {
	alg, err := a.algorithm(ctx)
	if temporary(err) || ctx.Err() != nil {
		return ending, err
	}
	if err != nil {
		a.log.Warn().Err(err).Msg("could not read metrics")
	}
	c := &result.Collection{
		Job:       a.id,
		Dir:       filepath.Dir(a.home),
		Attempt:   a.number,
		Outcome:   o,
		Ran:       a.dir,
		Algorithm: alg,
		MaxFiles:  a.options.MaxFiles,
		Unsynced:  a.unsynced(o),
		Manifests: a.dirs,
		Record:    func(e app.Ending) (app.Record, error) { return a.finalRecord(alg, e) },
		Check:     ctx.Err,
		Log:       a.log,
	}
	err = a.withSlot(ctx, func() (err error) {
		a.sendEvent(ctx, event{kind: evFreed})
		if a.remote != nil {
			if err := a.remote.Fetch(o, ctx.Err); err != nil {
				return fmt.Errorf("fetch the result: %w", err)
			}
		}
		tail := ""
		if alg != nil && len(alg.Warnings) > 0 {
			tail = logTail(a.home)
		}
		c.Warnings = warnings(o, alg, tail)
		ending, err = c.Collect()
		return err
	})
	if err == nil {
		err = a.sync(o)
	}
	return ending, err
}

// syncLog syncs the files of a failed attempt, which leaves only a log; an error is just
// logged.
func (a *attempt) syncLog(o *app.Outcome) {
	if err := a.sync(o); err != nil {
		a.log.Warn().Err(err).Msg("could not sync the log of a failed job")
	}
}

// unsynced reports whether an attempt's files are not durable before sync.
func (a *attempt) unsynced(o *app.Outcome) bool {
	return o != nil && (o.Unsynced != "" || a.remote != nil && a.remote.Boot != "")
}

// sync makes an attempt's files durable unless they already are. Attempts that end at the
// same time share the cost.
func (a *attempt) sync(o *app.Outcome) error {
	if !a.unsynced(o) {
		return nil
	}
	if a.disk != nil && a.disk.Sync() == nil {
		return nil
	}
	// Sync file by file to learn which file could not be written.
	if err := result.Sync(filepath.Dir(a.home)); err != nil {
		return fmt.Errorf("make the result durable: %w", err)
	}
	return nil
}

// finalRecord returns the record to store with the result.
func (a *attempt) finalRecord(alg *algorithm.File, e app.Ending) (app.Record, error) {
	e.Cluster = a.cluster
	record, err := a.jobs.FinalRecord(a.job, e)
	if err != nil || a.options.Describe == nil {
		return record, err
	}
	return a.options.Describe(record, a.job, alg)
}

// finishWithoutResult fails a job whose program succeeded.
func (a *attempt) finishWithoutResult(ctx context.Context, o *app.Outcome, code app.FailureCode, message string) {
	a.fetchResult(ctx)
	if err := result.ReturnOutput(a.home); err != nil {
		a.log.Warn().Err(err).Msg("could not remove collected files; they stay until the job is deleted or retried")
	}
	a.syncLog(o)
	e := app.Ending{Outcome: o, Failure: &app.Failure{Code: code, Message: message, ExitCode: &o.ExitCode}}
	if code == app.FailedMemory {
		a.raiseMemory(a.definition(ctx), &e)
	}
	a.finish(ctx, e)
}

// fail finishes a job whose task failed.
func (a *attempt) fail(ctx context.Context, o *app.Outcome) {
	alg := a.definition(ctx)
	a.fetchResult(ctx)
	a.syncLog(o)
	tail := logTail(a.home)
	failure, lacks := failure(a.job, o, alg, tail)
	e := app.Ending{Outcome: o, Failure: failure, Warnings: warnings(o, alg, tail)}
	if lacks == results.LacksMemory {
		a.raiseMemory(alg, &e)
	}
	a.finish(ctx, e)
}

// raiseMemory requests a retry with more memory for a job that ran out of it, or adds to
// the failure message why there is none.
func (a *attempt) raiseMemory(alg *algorithm.File, e *app.Ending) {
	if alg == nil || a.stopAsked() {
		return
	}
	var why string
	if e.MoreMemory, why = a.jobs.MoreMemory(alg, a.job); why != "" {
		e.Failure.Message = strings.TrimSuffix(e.Failure.Message, ".") + ". " + why
	}
}

// fetchResult copies to home the files of an attempt that did not complete: its log for
// the user, and its output for the next attempt. Errors delay the job's end only for a
// limited time.
func (a *attempt) fetchResult(ctx context.Context) {
	begin := time.Now()
	for b := (backoff{time.Second, time.Minute}); a.remote != nil && ctx.Err() == nil; b.wait(ctx) {
		err := a.withSlot(ctx, func() error { return a.remote.Fetch(nil, ctx.Err) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if !temporary(err) || time.Since(begin) >= prepareTimeout {
			a.log.Error().Err(err).Msg("could not fetch the output of an attempt from the shared folder")
			return
		}
		a.log.Warn().Err(err).Msg("could not fetch the output of an attempt; retrying")
	}
}

// finish records how the attempt ended. Its files must not be removed earlier: a runner
// that finds the attempt without that record needs them to finish it. Once the end is
// recorded the job is no longer ours, which is also why the attempt is asked to stop.
func (a *attempt) finish(ctx context.Context, e app.Ending) {
	if ctx.Err() != nil {
		return // the next runner determines how the attempt ended
	}
	e.Cluster = a.cluster
	stopped := a.stopAsked()
	again := (e.MoreMemory > 0 || e.Failure == nil && a.job.Private.Lost < a.job.Private.Retries) && !stopped
	completed := e.Failure == nil && e.Outcome != nil && e.Outcome.Cause == app.CauseDone
	// If nothing is retained, a lost attempt's work directory is needed only until the
	// next attempt has read it.
	noted := false
	if !completed && (!again || a.retained.keep > 0) {
		err := a.retained.recordRetained(a.id, a.number, a.lacksSpace(e))
		if noted = err == nil; !noted {
			a.log.Warn().Err(err).Msg("could not record the retained work directory; removing it")
		}
	}
	err := a.record(ctx, "end", func(ctx context.Context) error {
		return a.jobs.Finish(ctx, a.id, a.number, e)
	})
	if err != nil {
		return // ctx has ended; the next runner will find the same state
	}
	a.clear(ctx, completed, noted, again)
	took := time.Since(a.begin)
	switch {
	case completed:
		a.log.Info().Dur("took", took).Int64("bytes", e.ResultBytes).Msg("job completed")
	case e.MoreMemory > 0 && !stopped:
		a.log.Info().Dur("took", took).Str("reason", loggedReason(a.job, e)).Int64("memory", e.MoreMemory).Msg("attempt ran out of memory; the job starts again with more")
	case e.Failure != nil:
		a.log.Info().Dur("took", took).Str("code", string(e.Failure.Code)).Str("reason", loggedReason(a.job, e)).Msg("job failed")
	case stopped:
		a.log.Info().Dur("took", took).Msg("job stopped")
	default:
		a.log.Warn().Dur("took", took).Str("reason", e.Lost).Msg("attempt lost")
	}
}

// clear removes the files that are no longer needed after an attempt's end is recorded.
func (a *attempt) clear(ctx context.Context, completed, noted, again bool) {
	if a.remote != nil {
		if err := a.withSlot(ctx, a.remote.Remove); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("could not remove an attempt's directory from the shared folder")
		}
	}
	if completed {
		return // collecting has removed the work directories
	}
	err := a.withSlot(ctx, func() error { return a.retained.clear(a.id, a.number, noted, again) })
	if err != nil && ctx.Err() == nil {
		a.log.Warn().Err(err).Msg("could not remove a work directory")
	}
}

// definition is like algorithm, for the end of a failed attempt: it waits until the store
// works again. It returns nil if the definition can't be read, or ctx has ended.
func (a *attempt) definition(ctx context.Context) *algorithm.File {
	alg, err := a.algorithm(ctx)
	for b := serviceBackoff(); temporary(err) && ctx.Err() == nil; b.wait(ctx) {
		alg, err = a.algorithm(ctx)
	}
	if err != nil {
		a.log.Warn().Err(err).Msg("could not read the job's algorithm to explain its failure")
		return nil
	}
	return alg
}

// algorithm returns the definition that the job was validated against.
func (a *attempt) algorithm(ctx context.Context) (*algorithm.File, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	alg, err := a.jobs.AlgorithmOf(ctx, a.job)
	if err != nil {
		return nil, fmt.Errorf("find the algorithm: %w", err)
	}
	return alg, nil
}

// withSlot waits for a free slot and runs work, which does heavy file I/O.
func (a *attempt) withSlot(ctx context.Context, work func() error) error {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.slots }()
	return work()
}

// record updates the job's record. It retries until it succeeds, because how a task ended
// must be recorded even if the disk was full for a while. An error means that ctx has
// ended.
func (a *attempt) record(ctx context.Context, what string, change func(context.Context) error) error {
	for b := serviceBackoff(); ; b.wait(ctx) {
		callCtx, cancel := context.WithTimeout(ctx, serviceTimeout)
		err := change(callCtx)
		cancel()
		switch {
		case err == nil || errors.Is(err, fault.NotFound): // the job was deleted
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		a.log.Warn().Err(err).Str("change", what).Msg("could not update the job record; retrying")
	}
}
