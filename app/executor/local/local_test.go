package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/task"
	"molrun/app/task/process"
	"molrun/app/test/conformance"
	"molrun/app/test/must"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{Parallel: true, New: func(t *testing.T) app.Executor { return newExecutor(t) }}.Run(t)
}

func TestTasksOutliveTheService(t *testing.T) {
	tests := []struct {
		name   string
		script string // part that runs after the service was killed
		cause  app.Cause
		while  func(e *local.Executor, a app.Task) error
	}{
		{"adopted", untilGo + "exit 3", app.CauseExit, func(_ *local.Executor, a app.Task) error {
			return os.WriteFile(output(a, "go"), nil, 0o600)
		}},
		{"stopped", forever, app.CauseStopped, func(e *local.Executor, a app.Task) error {
			return e.Stop(context.Background(), a)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newTask(t, "echo > out/ready\n"+tt.script)
			service := exec.Command(os.Args[0], "serve", a.Dir, a.Token)
			must.OK(t, service.Start())
			untilExists(t, output(a, "ready"))
			must.OK(t, service.Process.Kill())
			service.Wait() // fails, because it was killed
			e := newExecutor(t)
			if now := status(t, e, a); now.State != app.TaskRunning {
				t.Errorf("status %+v, want running", now)
			}
			must.OK(t, tt.while(e, a))
			ended(t, e, a, tt.cause)
		})
	}
}

func TestTasksOutliveTheProgramsFile(t *testing.T) {
	program := filepath.Join(t.TempDir(), "molrun")
	must.Write(t, program, must.Read(t, os.Args[0]))
	must.OK(t, os.Chmod(program, 0o700))
	e := newExecutorOf(t, local.Options{Program: program})
	a := start(t, e, newTask(t, "echo > out/ready\n"+untilGo))
	untilExists(t, output(a, "ready"))
	must.OK(t, os.WriteFile(program+".new", []byte("#!/bin/false\n"), 0o700))
	must.OK(t, os.Rename(program+".new", program))
	touch(t, output(a, "go"))
	ended(t, e, a, app.CauseDone)
}

func TestKilledTaskIsLostWithAllItsProcesses(t *testing.T) {
	e := newExecutor(t)
	a := start(t, e, newTask(t, stubborn+forever))
	untilExists(t, output(a, "ready"))
	must.OK(t, shimOf(t, a.Handle).Signal(syscall.SIGKILL))
	lost(t, e, a, "the task's process was killed")
}

func TestStopKillsProcessesOfALostTask(t *testing.T) {
	e := newExecutor(t)
	a := start(t, e, newTask(t, stubborn+forever))
	untilExists(t, output(a, "ready"))
	must.OK(t, shimOf(t, a.Handle).Signal(syscall.SIGKILL))
	must.Become(t, "free lock", func() bool {
		locked, err := task.Locked(a.Dir)
		return !locked && err == nil
	})
	must.OK(t, e.Stop(t.Context(), a))
	if left := marked(t, a); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// After a reboot, the PIDs in a directory may belong to other processes.
func TestOtherProcessesAreNotSignalledAfterAReboot(t *testing.T) {
	for _, name := range []string{task.RunFile, "handle"} {
		t.Run(name, func(t *testing.T) {
			a := newTask(t, "true")
			other := exec.Command("sleep", "1000")
			other.Env = []string{"PATH=" + os.Getenv("PATH"), process.TokenVariable + "=" + a.Token}
			must.OK(t, other.Start())
			defer func() {
				other.Process.Kill()
				other.Wait() // killed
			}()
			p, err := process.IDOf(other.Process.Pid)
			must.OK(t, err)
			p.BootID = "another"
			data, err := json.Marshal(task.Started{Protocol: 1, ID: p, Token: a.Token})
			must.OK(t, err)
			if name == task.RunFile {
				err = os.WriteFile(filepath.Join(a.Dir, name), data, 0o600)
			} else {
				a.Handle = app.Handle(data)
			}
			must.OK(t, err)
			e := newExecutor(t)
			must.OK(t, e.Stop(t.Context(), a))
			if now := status(t, e, a); now.State != app.TaskLost || now.Reason != "the machine was restarted" {
				t.Errorf("status %+v, want lost because of a reboot", now)
			}
			if left := marked(t, a); len(left) != 1 {
				t.Errorf("the process that now has the PID was signalled")
			}
		})
	}
}

func TestRepeatedStopKillsATaskThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	e := newExecutor(t)
	a := start(t, e, newTask(t, stubborn+forever))
	untilExists(t, output(a, "ready"))
	shim := shimOf(t, a.Handle)
	must.OK(t, shim.Signal(syscall.SIGSTOP)) // simulates a hanging task
	must.Become(t, "end of the hanging task", func() bool {
		must.OK(t, e.Stop(t.Context(), a))
		return status(t, e, a).State == app.TaskLost
	})
	if left := marked(t, a); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestTaskIsStartingUntilItsProcessReports(t *testing.T) {
	e := newExecutor(t)
	a := newTask(t, "true")
	lock, err := task.Lock(a.Dir)
	must.OK(t, err)
	defer lock.Close()
	if now := status(t, e, a); now.State != app.TaskStarting {
		t.Errorf("status %+v, want starting", now)
	}
	must.OK(t, e.Stop(t.Context(), a))
	if !task.StopRequested(a.Dir) {
		t.Error("the request to stop was not written")
	}
}

func TestTaskProcessIsDetachedAndHasNoSecrets(t *testing.T) {
	t.Setenv("MOLRUN_SECRET", "hidden")
	e := newExecutor(t)
	a := start(t, e, newTask(t, "echo > out/ready\n"+untilGo))
	untilExists(t, output(a, "ready"))
	shim := shimOf(t, a.Handle)
	run, err := task.ReadRun(a.Dir)
	if err != nil || run.ID != shim || run.Token != a.Token {
		t.Errorf("run.json %+v, %v; want process %+v of the handle", run, err, shim)
	}
	proc := filepath.Join("/proc", strconv.Itoa(shim.PID))
	env, err := os.ReadFile(filepath.Join(proc, "environ"))
	if err != nil || strings.Contains(string(env), "hidden") || !strings.Contains(string(env), "PATH=") {
		t.Errorf("environment %q, %v; want PATH and no secret", env, err)
	}
	for fd, want := range []string{os.DevNull, filepath.Join(a.Dir, local.LogFile), filepath.Join(a.Dir, local.LogFile), filepath.Join(a.Dir, task.LockFile)} {
		if got, err := os.Readlink(filepath.Join(proc, "fd", strconv.Itoa(fd))); got != want || err != nil {
			t.Errorf("descriptor %d is %s, %v; want %s", fd, got, err, want)
		}
	}
	session, err := os.ReadFile(filepath.Join(proc, "stat"))
	if fields := strings.Fields(string(session)); err != nil || fields[5] != fields[0] {
		t.Errorf("session %s of process %s, %v; want its own", fields[5], fields[0], err)
	}
	touch(t, output(a, "go"))
	over(t, e, a)
	must.Become(t, "end of the zombie", func() bool {
		_, err := os.Stat(proc)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestStartThatFailsLeavesNoLock(t *testing.T) {
	a := newTask(t, "true")
	e := newExecutorOf(t, local.Options{Program: "/no/such/molrun"})
	if h, err := e.Start(t.Context(), a); !errors.Is(err, fault.Unavailable) || h != "" {
		t.Errorf("start of a missing program: handle %q, %v; want an error that may pass", h, err)
	}
	if locked, err := task.Locked(a.Dir); locked || err != nil {
		t.Errorf("locked = %v, %v; want a free lock", locked, err)
	}
	if now := over(t, newExecutor(t), start(t, newExecutor(t), a)); now.Outcome == nil || now.Outcome.Cause != app.CauseDone {
		t.Errorf("status %+v after a successful start, want done", now)
	}
}

func TestTaskThatDoesNotStartIsLostWithItsLastLogLine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "molrun")
	must.Program(t, program, "#!/bin/sh\necho earlier >&2\necho out of luck >&2\n")
	e := newExecutorOf(t, local.Options{Program: program})
	lost(t, e, start(t, e, newTask(t, "true")), "the task did not start: out of luck")
}

// An error must neither count as the end of a task nor hide other tasks.
func TestUnreadableTaskHidesNoOther(t *testing.T) {
	e := newExecutor(t)
	good := start(t, e, newTask(t, "true"))
	over(t, e, good)
	newer, bad := newTask(t, "true"), newTask(t, "true")
	must.Write(t, filepath.Join(newer.Dir, task.OutcomeFile), `{"protocol":99}`)
	bad.Dir = filepath.Join(bad.Dir, task.SpecFile, "below") // a path below a file
	all, err := e.Status(t.Context(), []app.Task{newer, bad, good})
	must.OK(t, err)
	if all[0].State != app.TaskLost || !strings.Contains(all[0].Reason, "protocol version 99") {
		t.Errorf("status with an outcome of another protocol: %+v", all[0])
	}
	if all[1].State != app.TaskStarting || !strings.Contains(all[1].Reason, "not a directory") || strings.Contains(all[1].Reason, bad.Dir) {
		t.Errorf("status of an unreadable directory: %+v", all[1])
	}
	if all[2].State != app.TaskEnded {
		t.Errorf("status of the other: %+v", all[2])
	}
}

func TestCancelledContextDoesNothing(t *testing.T) {
	e := newExecutor(t)
	a := newTask(t, "true")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if all, err := e.Status(ctx, []app.Task{a}); err == nil {
		t.Errorf("status with a cancelled context: %+v", all)
	}
	if h, err := e.Start(ctx, a); err == nil {
		t.Errorf("start with a cancelled context: %q", h)
	}
}

// A program can replace its task's files with anything. This can make its own job fail,
// but must not block the executor.
func TestReplacedControlFilesDoNotBlockTheExecutor(t *testing.T) {
	tests := []struct {
		name, script string
		want         app.TaskState // state while it runs
	}{
		{"a pipe for run.json", "rm ../run.json; mkfifo ../run.json", app.TaskStarting},
		{"a folder for run.json", "rm ../run.json; mkdir ../run.json", app.TaskStarting},
		{"a pipe for progress.json", "mkfifo ../progress.json", app.TaskRunning},
		{"a folder for progress.json", "mkdir ../progress.json", app.TaskRunning},
		{"a long progress.json", "truncate -s 1T ../progress.json", app.TaskRunning},
		{"a pipe for run.lock", "rm ../run.lock; mkfifo ../run.lock", app.TaskLost},
		{"a link for run.lock", "rm ../run.lock; ln -s run.lock ../run.lock", app.TaskLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newExecutor(t)
			a := start(t, e, newTask(t, tt.script+"; echo > out/ready; "+forever))
			untilExists(t, output(a, "ready"))
			if now := status(t, e, a); now.State != tt.want {
				t.Errorf("status %+v, want %v", now, tt.want)
			}
			must.OK(t, e.Stop(t.Context(), a))
		})
	}
}

func TestTaskIsLostIfItsOutcomeIsADirectory(t *testing.T) {
	e := newExecutor(t)
	lost(t, e, start(t, e, newTask(t, "mkdir ../outcome.json")), task.OutcomeFile)
}
