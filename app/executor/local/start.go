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
	"molrun/app/task"
)

// LogFile takes what the process that runs a task says about itself.
const LogFile = "shim.log"

// lockDescriptor is where the started process finds the lock.
const lockDescriptor = 3

// Start starts the process that runs the task. The lock is taken here and
// handed down, so that from the first instant a held lock means a living task.
// A directory is started once: to repeat it finds what is there.
func (e *Executor) Start(ctx context.Context, t app.Task) (app.Handle, error) {
	if err := ctx.Err(); err != nil {
		return "", failed("start", t, err)
	}
	lock, err := task.Lock(t.Dir)
	if errors.Is(err, task.ErrLocked) {
		return "", nil // it runs
	}
	if err != nil {
		return "", failed("start", t, err)
	}
	defer lock.Close()
	if started(t.Dir) {
		return "", nil // it ran
	}
	pid, err := e.fork(ctx, t, lock)
	if err != nil {
		return "", failed("start", t, err)
	}
	defer e.reaper.add(pid) // until then the number stays its own
	return handle(pid), nil
}

// fork starts the process with nothing of this one but the variables that any
// program needs, in a session of its own, with files for its words: it must
// not notice when this process ends.
func (e *Executor) fork(ctx context.Context, t app.Task, lock *os.File) (int, error) {
	isolation := e.isolation.Isolation
	var err error
	if isolation.Sandbox, err = e.sandboxOf(ctx, t.Job); err != nil {
		return 0, fmt.Errorf("find out what the algorithm may reach: %w", err)
	}
	in, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	log, err := os.OpenFile(filepath.Join(t.Dir, LogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	argv := []string{e.program, "task", t.Dir, "--lock-fd", "3", "--isolation", isolation.String()}
	return syscall.ForkExec(e.program, argv, &syscall.ProcAttr{
		Dir:   t.Dir,
		Env:   append(task.InheritedEnv(), task.TokenVariable+"="+t.Token),
		Files: []uintptr{in.Fd(), log.Fd(), log.Fd(), lockDescriptor: lock.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// handle names the started process. It is a help, not a need: without it the
// directory says the same a moment later.
func handle(pid int) app.Handle {
	p, err := task.FindProcess(pid)
	if err != nil {
		return ""
	}
	text, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	return app.Handle(text)
}

// process reads a handle; false where it is empty or no handle.
func process(h app.Handle) (task.Process, bool) {
	var p task.Process
	err := json.Unmarshal([]byte(h), &p)
	return p, err == nil && p.PID > 0
}
