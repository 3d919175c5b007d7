package runner

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/task"
)

// prepPatience is how long a claimed job waits for what may come back by
// itself, such as room on a full disk, before it fails.
const prepPatience = 10 * time.Minute

var (
	// errStopped says that work was given up because the job's end is asked for.
	errStopped = errors.New("the job's end was asked for")
	// errAlive says that a task runs, or ran, in the directory to be laid out.
	errAlive = errors.New("the attempt's directory is in use")
)

// refused says that a job can't be started, in words for its user.
type refused struct {
	failure app.Failure
	cause   error // for the log
}

func (r *refused) Error() string { return r.failure.Message }
func (r *refused) Unwrap() error { return r.cause }

// prepare lays out the attempt's directory and starts its task. It gives an
// ending where the job can't start; an error says that ctx has ended.
func (a *attempt) prepare(ctx context.Context) (*app.Ending, error) {
	err := a.patiently(ctx, func() error {
		if err := a.r.worker(ctx, func() error { return a.layOut(ctx) }); err != nil {
			return err
		}
		return a.startTask(ctx)
	})
	var no *refused
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil || errors.Is(err, errAlive):
		a.tell(ctx, event{kind: evPrepared})
		return nil, nil
	case errors.Is(err, errStopped):
		return &app.Ending{Lost: "its end was asked for"}, nil
	case errors.As(err, &no):
		a.log.Warn().Err(no.cause).Str("reason", no.failure.Message).Msg("job can't be started")
	default:
		a.log.Error().Err(err).Msg("job can't be laid out")
		no = cannotStart("The server could not lay out the job's files; its log says why. Retry the job.", err)
	}
	return no.ending(), nil
}

// patiently gets a task going. A full disk may have room again soon, as may a
// table of files or processes: the job keeps its place and tries until
// prepPatience is over. A cluster that is away is waited for as long as it takes:
// its jobs must not all fail.
func (a *attempt) patiently(ctx context.Context, start func() error) error {
	begin := time.Now()
	for b := (backoff{time.Second, 30 * time.Second}); ; b.next = min(2*b.next, b.most) {
		err := start()
		switch {
		case !passing(err):
			return err
		case time.Since(begin) < prepPatience || a.away() && errors.Is(err, fault.Unavailable):
		case noSpace(err):
			return cannotStart("The server's disk had no room for the job's files. Ask an administrator to free some, then retry the job.", err)
		default:
			return err
		}
		a.log.Warn().AnErr("error", rootOf(err)).Msg("the job can't be started now; will try again")
		if noSpace(err) {
			a.tell(ctx, event{kind: evWaiting, reason: "waiting for room on the server's disk"})
		} else if a.away() {
			a.tell(ctx, event{kind: evWaiting, reason: "waiting for the cluster, or the folder that is shared with it"})
		}
		if err := a.rest(ctx, b.next); err != nil {
			return err
		}
	}
}

// rootOf gives what is of use in the log: not the sentence for the user.
func rootOf(err error) error {
	if no, ok := errors.AsType[*refused](err); ok {
		return no.cause
	}
	return err
}

// rest waits for d, or until there is no reason to.
func (a *attempt) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-a.stop:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startTask hands the directory to the executor.
func (a *attempt) startTask(ctx context.Context) error {
	if a.stopAsked() {
		return errStopped
	}
	if err := a.locate(ctx); err != nil {
		return cannotStart(startMessage(err), err)
	}
	callCtx, cancel := context.WithTimeout(ctx, a.place.patience)
	defer cancel()
	handle, err := a.place.executor.Start(callCtx, a.task())
	if err != nil {
		return cannotStart(startMessage(err), err)
	}
	a.job.Private.Handle = handle
	return a.record(ctx, "handle", func(ctx context.Context) error {
		return a.r.jobs.SetHandle(ctx, a.id, a.number, handle)
	})
}

// startMessage gives the executor's own sentence where it has one for users.
func startMessage(err error) string {
	var e *fault.Error
	if errors.As(err, &e) && e.Code != fault.Internal {
		return e.Message
	}
	return "The server could not start the job's program; its log says why. Retry the job."
}

func cannotStart(message string, cause error) *refused {
	return &refused{app.Failure{Code: app.FailedCannotStart, Message: message}, cause}
}

// ending is that of an attempt that never began.
func (r *refused) ending() *app.Ending {
	return &app.Ending{
		Outcome: &app.Outcome{Protocol: task.Protocol, Cause: app.CauseCannotStart, Message: r.failure.Message},
		Failure: &r.failure,
	}
}

// noSpace reports whether err says that the disk is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// exhausted reports whether err says that the machine or this process has no
// more open files, processes or memory to give.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}

// passing reports whether the same may well succeed a while later.
func passing(err error) bool {
	return noSpace(err) || exhausted(err) || errors.Is(err, fault.Unavailable) || errors.Is(err, fault.StorageFull) ||
		errors.Is(err, context.DeadlineExceeded)
}

func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
