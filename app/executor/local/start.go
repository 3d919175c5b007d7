package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/task/process"
)

// LogFile receives the error output of the process that runs a task.
const LogFile = "shim.log"

// lockDescriptor is the file descriptor of the lock in the started process.
const lockDescriptor = 3

// Start starts the process that runs the task. It takes the lock and passes it to the
// process, so that a held lock means a live task from the first moment. A directory is
// started only once, so Start can be repeated.
func (e *Executor) Start(ctx context.Context, t app.Task) (app.Handle, error) {
	if err := ctx.Err(); err != nil {
		return "", taskError("start", t, err)
	}
	lock, err := task.Lock(t.Dir)
	if errors.Is(err, task.ErrLocked) {
		return "", nil // it runs
	}
	if err != nil {
		return "", taskError("start", t, err)
	}
	defer lock.Close()
	if hasStarted(t.Dir) {
		return "", nil // it has run
	}
	pid, err := e.fork(ctx, shim{dir: t.Dir, log: LogFile, token: t.Token, job: t.Job}, lock)
	if err != nil {
		return "", taskError("start", t, err)
	}
	defer e.reaper.add(pid) // the PID can't be reused earlier
	return handleOf(pid), nil
}

// fork starts the process in its own session, with the few environment variables that any
// program needs and with files for its output: it must not be affected when the service
// ends.
func (e *Executor) fork(ctx context.Context, s shim, lock *os.File) (int, error) {
	isolation := e.isolation.Isolation
	var err error
	if isolation.Sandbox, err = e.sandboxOf(ctx, s.job); err != nil {
		return 0, fmt.Errorf("determine the algorithm's sandbox: %w", err)
	}
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer stdin.Close()
	log, err := os.OpenFile(filepath.Join(s.dir, s.log), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	argv := append([]string{"molrun", "task", s.dir, "--lock-fd", "3", "--isolation", isolation.String()}, s.flags...)
	pid, err := syscall.ForkExec(e.program, argv, &syscall.ProcAttr{
		Dir:   s.dir,
		Env:   append(task.InheritedEnv(), process.TokenVariable+"="+s.token),
		Files: []uintptr{stdin.Fd(), log.Fd(), log.Fd(), lockDescriptor: lock.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if isAway(err) {
		return 0, &fault.Error{Code: fault.Unavailable, Message: "The server's executable could not be started. Ask an administrator to check it, then retry the job.", Err: err}
	}
	return pid, err
}

// isAway reports whether err can mean that the program is just being replaced, so that a
// later start can succeed. ESTALE is an error of network file systems.
func isAway(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ETXTBSY) || errors.Is(err, syscall.ESTALE)
}

// handleOf identifies the started process. It can be empty: a moment later the directory
// contains the same information.
func handleOf(pid int) app.Handle {
	id, err := process.IDOf(pid)
	if err != nil {
		return ""
	}
	text, err := json.Marshal(id)
	if err != nil {
		return ""
	}
	return app.Handle(text)
}

// parseHandle returns false if the handle is empty or not from this executor.
func parseHandle(h app.Handle) (process.ID, bool) {
	var id process.ID
	err := json.Unmarshal([]byte(h), &id)
	return id, err == nil && id.PID > 0
}
