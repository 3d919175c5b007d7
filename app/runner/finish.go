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

// collectTimeout is how long the runner tries to keep a result if the reason
// for the failure is not a temporary one.
const collectTimeout = 10 * time.Minute

// collect keeps the result of a task that is done and finishes the attempt.
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
			code, message := withoutOutput(o, string(missing))
			a.finishWithoutResult(ctx, o, code, message)
			return
		case !temporary(err) && time.Since(begin) >= collectTimeout:
			a.log.Error().Err(err).Msg("could not store the result")
			a.finishWithoutResult(ctx, o, app.FailedExit, "The program ended well, but the server could not keep its result; its log says why. Retry the job.")
			return
		}
		a.log.Warn().Err(err).Msg("could not store the result; retrying")
	}
}

// keepResult makes the result. The task has exited, but its slot is released only
// when a worker is free, so that no more tasks wait to be collected than there
// are slots.
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
	err = a.worker(ctx, func() (err error) {
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

// syncLog does the same for an attempt that leaves a log alone.
func (a *attempt) syncLog(o *app.Outcome) {
	if err := a.sync(o); err != nil {
		a.log.Warn().Err(err).Msg("could not sync the log of a failed job")
	}
}

// unsynced reports whether what an attempt has left is not durable before sync.
func (a *attempt) unsynced(o *app.Outcome) bool {
	return o != nil && (o.Unsynced != "" || a.remote != nil && a.remote.Boot != "")
}

// sync makes what an attempt has left durable, if nothing else has. Attempts that end at
// the same time share the cost of it.
func (a *attempt) sync(o *app.Outcome) error {
	if !a.unsynced(o) {
		return nil
	}
	if a.disk != nil && a.disk.Sync() == nil {
		return nil
	}
	// Whose file could not be written is seen file by file.
	if err := result.Sync(filepath.Dir(a.home)); err != nil {
		return fmt.Errorf("make the result durable: %w", err)
	}
	return nil
}

// finalRecord returns the record that the result has.
func (a *attempt) finalRecord(alg *algorithm.File, e app.Ending) (app.Record, error) {
	e.Cluster = a.cluster
	record, err := a.jobs.FinalRecord(a.job, e)
	if err != nil || a.options.Describe == nil {
		return record, err
	}
	return a.options.Describe(record, a.job, alg)
}

// finishWithoutResult fails a job whose program is done.
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

// fail finishes a job whose task ended badly.
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

// raiseMemory has a job that ran out of memory started again with more, or says why it is not.
func (a *attempt) raiseMemory(alg *algorithm.File, e *app.Ending) {
	if alg == nil || a.stopAsked() {
		return
	}
	var why string
	if e.MoreMemory, why = a.jobs.MoreMemory(alg, a.job); why != "" {
		e.Failure.Message = strings.TrimSuffix(e.Failure.Message, ".") + ". " + why
	}
}

// fetchResult copies home what remains of an attempt that was not completed: its log
// for the user, and its output for the next attempt. Trouble with it delays the
// job's end only for a while.
func (a *attempt) fetchResult(ctx context.Context) {
	begin := time.Now()
	for b := (backoff{time.Second, time.Minute}); a.remote != nil && ctx.Err() == nil; b.wait(ctx) {
		err := a.worker(ctx, func() error { return a.remote.Fetch(nil, ctx.Err) })
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

// finish records how the attempt ended. Its files may be removed only then: a
// runner that finds the attempt without that record needs them to finish it. Once
// the end is recorded the job is no longer ours, and the attempt is asked to stop
// for that reason.
func (a *attempt) finish(ctx context.Context, e app.Ending) {
	if ctx.Err() != nil {
		return // something may be unknown that the next runner finds out
	}
	e.Cluster = a.cluster
	stopped := a.stopAsked()
	again := (e.MoreMemory > 0 || e.Failure == nil && a.job.Private.Lost < a.job.Private.Retries) && !stopped
	completed := e.Failure == nil && e.Outcome != nil && e.Outcome.Cause == app.CauseDone
	// If nothing is retained, a lost attempt's work directory only has to last
	// until the next attempt has read it.
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
		return // ctx has ended; the next runner finds the same
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

// clear removes what is no longer needed of an attempt whose end is recorded.
func (a *attempt) clear(ctx context.Context, completed, noted, again bool) {
	if a.remote != nil {
		if err := a.worker(ctx, a.remote.Remove); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("could not remove an attempt's directory from the shared folder")
		}
	}
	if completed {
		return // the collection has removed the work directories
	}
	err := a.worker(ctx, func() error { return a.retained.clear(a.id, a.number, noted, again) })
	if err != nil && ctx.Err() == nil {
		a.log.Warn().Err(err).Msg("could not remove a work directory")
	}
}

// definition is algorithm for the end of a failed attempt, which waits until the store works again. It
// is nil if the definition can't be read, or ctx has ended.
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

// worker waits until one of the runner's workers is free and has it do heavy work
// on files.
func (a *attempt) worker(ctx context.Context, work func() error) error {
	select {
	case a.workers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.workers }()
	return work()
}

// record changes the job's record. It tries until that is done, because what
// happened to a task must not be forgotten while the disk is full. An error
// says that ctx has ended.
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
