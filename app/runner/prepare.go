package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/folder"
	"molrun/app/base/fault"
	"molrun/app/job/eta"
	"molrun/app/task"
)

// prepareTimeout is how long a claimed job waits for a temporary condition, such as a
// full disk, to pass before it fails.
const prepareTimeout = 10 * time.Minute

// prepareEvery is the longest pause between retries.
const prepareEvery = 15 * time.Second

var (
	// errStopped means that work was abandoned because the job was canceled.
	errStopped = errors.New("the job was cancelled")
	// errAlive means that a task runs, or has run, in the attempt's directory.
	errAlive = errors.New("the attempt's directory is in use")
)

// prepare creates the attempt's directory and starts its task. It returns an ending if
// the job can't start; an error means that ctx has ended, or is errGPUFault.
func (a *attempt) prepare(ctx context.Context) (*app.Ending, error) {
	err := a.prepareAndStart(ctx)
	var refusal *rejection
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil || errors.Is(err, errAlive):
		a.sendEvent(ctx, event{kind: evPrepared})
		return nil, nil
	case errors.Is(err, errGPUFault):
		return nil, err
	case errors.Is(err, errStopped):
		return &app.Ending{Lost: "it was cancelled"}, nil
	case errors.As(err, &refusal):
		a.log.Warn().Err(refusal.cause).Str("reason", refusal.failure.Message).Msg("could not start the job")
	default:
		a.log.Error().Err(err).Msg("could not prepare the attempt's directory")
		refusal = cannotStart("The server could not prepare the job's files; see the server log. Retry the job.", err)
	}
	return &app.Ending{
		Outcome: &app.Outcome{Protocol: task.Protocol, Cause: app.CauseCannotStart, Message: refusal.failure.Message},
		Failure: &refusal.failure,
	}, nil
}

// prepareAndStart retries while the error is temporary. A full disk, or a full table of
// files or processes, may have space again soon: the job keeps its slot for
// prepareTimeout. It waits for a cluster for as long as it takes, because otherwise all
// jobs would fail.
func (a *attempt) prepareAndStart(ctx context.Context) error {
	begin, made := time.Now(), false
	for b := (backoff{time.Second, prepareEvery}); ; {
		var err error
		if !made {
			err = a.withSlot(ctx, func() error { return a.makeDir(ctx) })
		}
		if err == nil {
			made = a.remote != nil // the directory can be kept: no process of this machine has used it
			err = a.startTask(ctx)
		}
		err = a.asUnavailable(err)
		switch {
		case !temporary(err):
			return err
		case time.Since(begin) < prepareTimeout || a.remote != nil && errors.Is(err, fault.Unavailable):
		case noSpace(err) && a.isShared(err):
			return cannotStart("The folder shared with the cluster is full. Ask an administrator to free space, then retry the job.", err)
		case noSpace(err):
			return cannotStart("The server's disk is full. Ask an administrator to free space, then retry the job.", err)
		default:
			return err
		}
		cause := err
		if refusal, ok := errors.AsType[*rejection](err); ok {
			cause = refusal.cause // the log does not need the user's message
		}
		a.log.Warn().AnErr("error", cause).Msg("could not start the job; retrying")
		if why := a.whyWaiting(err); why != (eta.Reason{}) {
			a.sendEvent(ctx, event{kind: evWaiting, reason: why})
		}
		select {
		case <-time.After(b.pause()):
		case <-a.stop:
			return errStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// whyWaiting returns the reason, shown to users, why the job does not start yet; no
// reason if the machine is just busy.
func (a *attempt) whyWaiting(err error) eta.Reason {
	switch {
	case noSpace(err) && a.isShared(err):
		return eta.Reason{Text: "waiting for space in the folder shared with the cluster", By: eta.Disk}
	case noSpace(err):
		return eta.Reason{Text: "waiting for space on the server's disk", By: eta.Disk}
	case a.remote != nil:
		return a.executor.waiting("waiting for the cluster" + cmp.Or(unavailableSuffix(err), " or its shared folder"))
	case errors.Is(err, fault.Unavailable):
		return eta.Reason{Text: "waiting because the server's executable can't be started now"}
	}
	return eta.Reason{}
}

// shareErrors holds the errors of a network file system that is unavailable or not mounted
// correctly.
var shareErrors = []error{
	syscall.EIO, syscall.ESTALE, syscall.ENOTCONN, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	syscall.ESHUTDOWN, syscall.EREMOTEIO, syscall.ENXIO, syscall.EROFS, syscall.EACCES, syscall.EPERM,
}

// asUnavailable marks an error of the folder shared with the cluster as unavailability,
// so that jobs wait for the folder as they wait for the cluster.
func (a *attempt) asUnavailable(err error) error {
	i := slices.IndexFunc(shareErrors, func(e error) bool { return errors.Is(err, e) })
	if i < 0 || temporary(err) || !a.isShared(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", fault.Errorf(fault.Unavailable, "The folder shared with the cluster is not usable: %v", shareErrors[i]), err)
}

// isShared reports whether err concerns a file in the folder shared with the cluster. An
// error without an absolute path comes from the executor, which keeps its files there.
func (a *attempt) isShared(err error) bool {
	if a.remote == nil {
		return false
	}
	path := ""
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		path = e.Path
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		path = e.New
	}
	in, relErr := filepath.Rel(filepath.Dir(a.executor.remote.AttemptsDir()), path)
	return !filepath.IsAbs(path) || relErr == nil && filepath.IsLocal(in)
}

// unavailableSuffix returns the executor's explanation of why it is unavailable, as a suffix for a
// message.
func unavailableSuffix(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code == fault.Unavailable {
		return ": " + strings.TrimSuffix(e.Message, ".")
	}
	return ""
}

// makeDir creates the attempt's directory from scratch.
//
// It holds the task's lock while doing so: a task that an earlier runner may just have
// started must not begin halfway through.
func (a *attempt) makeDir(ctx context.Context) error {
	if failure, err := a.jobs.ResolveInputs(ctx, a.job); failure != nil {
		return &rejection{failure: *failure}
	} else if err != nil {
		return err
	}
	program := a.options.Program
	if a.remote != nil {
		var err error
		if program, err = a.executor.remote.Program(ctx); err != nil {
			return err
		}
		if err := a.makeRemoteDir(); err != nil {
			return fmt.Errorf("make the attempt's directory: %w", err)
		}
	} else if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fmt.Errorf("make the attempt's directory: %w", err)
	}
	lock, err := a.lockDir()
	switch {
	case errors.Is(err, task.ErrLocked):
		return errAlive
	case errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP):
		// A cluster's file system might not support locks.
	case err != nil:
		return fmt.Errorf("make the attempt's directory: %w", err)
	default:
		defer lock.Close() // nil for a job in a worker
	}
	if task.Exists(a.dir, task.RunFile) || task.Exists(a.dir, task.OutcomeFile) || task.Exists(a.dir, task.ClaimDir) {
		return errAlive
	}
	alg, err := a.algorithm(ctx)
	if err != nil {
		return err
	}
	home, err := a.folder(alg)
	if err != nil {
		return err
	}
	storage, err := a.jobs.StorageShares(ctx, []app.Writing{a.writing(0)})
	if err != nil {
		return err
	}
	l := layout{
		dir:       a.dir,
		storage:   storage[0],
		jobDir:    filepath.Dir(a.home),
		job:       a.job,
		lease:     a.lease,
		algorithm: alg,
		program:   program,
		options:   &a.options,
		inputPath: a.jobs.InputPath,
		folder:    home,
		version:   a.programVersion(ctx, alg),
		unsynced:  a.worker != nil,
		check: func() error {
			if a.stopAsked() {
				return errStopped
			}
			return ctx.Err()
		},
	}
	return l.writeContent()
}

// lockDir takes the task's lock. A job in a worker has no lock of its own: it is handed to
// its worker later.
func (a *attempt) lockDir() (*os.File, error) {
	if a.worker != nil {
		return nil, nil
	}
	return task.Lock(a.dir)
}

// folder returns the path of the algorithm's folder as seen by the task.
func (a *attempt) folder(alg *algorithm.File) (path string, err error) {
	if alg.Folder == nil {
		return "", nil
	}
	if a.remote != nil {
		path, err = a.executor.folders.KeepCopy(alg.Folder)
	} else {
		path, err = alg.Folder.Path()
	}
	if errors.Is(err, folder.ErrGone) || errors.Is(err, folder.ErrChanged) {
		return "", cannotStart(fmt.Sprintf("The files of %s %s with which the job was submitted are no longer there. Submit it again under another name.", alg.Type, alg.Version), err)
	}
	return path, err
}

// programVersion queries the program's version if the program is on this machine.
func (a *attempt) programVersion(ctx context.Context, alg *algorithm.File) string {
	if a.remote != nil || a.options.VersionOf == nil {
		return ""
	}
	version, err := a.options.VersionOf(ctx, alg)
	if err != nil {
		a.log.Warn().Err(err).Msg("could not determine the program version")
	}
	return version
}

// makeRemoteDir creates the directory where the cluster sees it, and a link in the job's
// directory through which the log can be read. The executor creates the parent folder of
// all attempts once: if that is missing, a file system is not mounted.
func (a *attempt) makeRemoteDir() error {
	for _, dir := range []string{filepath.Dir(a.dir), a.dir} {
		if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrNotExist) {
			return fault.Errorf(fault.Unavailable, "The folder shared with the cluster is not usable: %v", err)
		} else if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(a.home), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(a.dir, a.home); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// startTask passes the task to the executor.
func (a *attempt) startTask(ctx context.Context) error {
	if a.stopAsked() {
		return errStopped
	}
	var handle app.Handle
	err := a.locate(ctx)
	if err == nil && a.worker != nil {
		a.worker.addPrepared(a)
		return nil
	}
	if err == nil && a.gpuFault.Load() != nil {
		return errGPUFault
	}
	if err == nil {
		callCtx, cancel := context.WithTimeout(ctx, a.executor.timeout)
		defer cancel()
		handle, err = a.executor.Start(callCtx, a.task())
	}
	if err != nil {
		message := "The server could not start the job's program; see the server log. Retry the job."
		if e, ok := errors.AsType[*fault.Error](err); ok && e.Code != fault.Internal {
			message = e.Message // messages of fault.Error are written for users
		}
		return cannotStart(message, err)
	}
	a.job.Private.Handle = handle
	return a.record(ctx, "handle", func(ctx context.Context) error {
		return a.jobs.SetHandle(ctx, a.id, a.number, handle)
	})
}

// locate determines where on its executor the task is placed.
func (a *attempt) locate(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	a.placement, err = a.jobs.PlacementOf(ctx, a.job)
	return err
}

// task returns the attempt as an app.Task for executors.
func (a *attempt) task() app.Task {
	t := app.Task{
		Job:       a.id,
		Attempt:   a.number,
		Token:     a.job.Private.Token,
		Dir:       a.dir,
		Needs:     a.lease.Needs,
		Devices:   a.lease.Devices,
		Limit:     time.Duration(a.job.MaxRuntime) * time.Second,
		Handle:    a.job.Private.Handle,
		Placement: a.placement,
		Owner:     app.Owner{Organization: a.job.Organization, Email: a.job.Email, Job: a.job.Name, Batch: a.job.Batch},
	}
	if a.worker != nil {
		t.Worker = a.worker.dir()
	}
	return t
}
