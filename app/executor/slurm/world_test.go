package slurm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/executor/slurm"
	"molrun/app/task"
	"molrun/app/task/process"
	"molrun/app/test/must"
)

// untilGo is the part of a script that runs until the file out/go appears.
const untilGo = "while [ ! -e out/go ]; do sleep 0.05; done\n"

// task prepares a task that runs the script.
func (w *world) task(script string) app.Task {
	w.Helper()
	t := app.Task{
		Job: "01JSLURM", Attempt: 1, Dir: w.dir(), Limit: time.Hour,
		Needs: placement.Resources{CPUs: 1, MemoryBytes: 64 << 20},
	}
	t.Token = fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(w.Name(), "/", "."), os.Getpid(), time.Now().UnixNano())
	for _, dir := range []string{task.OutDir, task.TempDir} {
		must.OK(w, os.MkdirAll(filepath.Join(t.Dir, task.WorkDir, dir), 0o700))
	}
	must.OK(w, task.WriteSpec(t.Dir, task.Spec{
		Token: t.Token, Job: string(t.Job), Attempt: 1, CPUs: 1, GraceSeconds: 1,
		Steps: []app.Step{{Name: "only", Argv: []string{"sh", "-c", script}}},
	}))
	return t
}

// start starts the task and registers its cleanup.
func (w *world) start(e *slurm.Executor, t app.Task) app.Task {
	w.Helper()
	h, err := e.Start(w.Context(), t)
	must.OK(w, err)
	t.Handle = h
	w.Cleanup(func() { w.cancel(t) })
	return t
}

// cancel cancels all jobs of the task's name.
func (w *world) cancel(t app.Task) {
	for _, name := range []string{w.name(t), w.prefix() + "-" + t.Token} {
		if name != "" {
			w.cluster.Run(w, "scancel", "--quiet", "--name="+name)
		}
	}
}

func (w *world) prefix() string {
	if w.options.Prefix != "" {
		return w.options.Prefix
	}
	return "molrun"
}

// name returns the name of the task's job, from its handle.
func (w *world) name(t app.Task) string {
	_, rest, _ := strings.Cut(string(t.Handle), `"name":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

func (w *world) status(e *slurm.Executor, t app.Task) app.TaskStatus {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	all, err := e.Status(ctx, []app.Task{t})
	must.OK(w, err)
	return all[0]
}

// until polls until the task's status satisfies is.
func (w *world) until(e *slurm.Executor, t app.Task, what string, is func(app.TaskStatus) bool) app.TaskStatus {
	w.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		now := w.status(e, t)
		if is(now) {
			return now
		}
		if time.Since(begin) > patience {
			w.Fatalf("not %s within %v: status %+v", what, patience, now)
		}
	}
}

func (w *world) over(e *slurm.Executor, t app.Task) app.TaskStatus {
	w.Helper()
	return w.until(e, t, "over", func(now app.TaskStatus) bool { return now.State >= app.TaskEnded })
}

func (w *world) ended(e *slurm.Executor, t app.Task) *app.Outcome {
	w.Helper()
	now := w.over(e, t)
	if now.State != app.TaskEnded || now.Outcome == nil {
		w.Fatalf("status %+v, want an outcome", now)
	}
	return now.Outcome
}

// ends waits for the end of the task and checks its cause.
func (w *world) ends(e *slurm.Executor, t app.Task, want app.Cause) {
	w.Helper()
	if o := w.ended(e, t); o.Cause != want {
		w.Errorf("outcome %+v, want %s", o, want)
	}
}

// lost waits until the task is lost and checks the reason.
func (w *world) lost(e *slurm.Executor, t app.Task, says string) {
	w.Helper()
	if now := w.over(e, t); now.State != app.TaskLost || !strings.Contains(now.Reason, says) {
		w.Errorf("status %+v, want lost: %s", now, says)
	}
}

func (w *world) running(e *slurm.Executor, t app.Task) app.TaskStatus {
	w.Helper()
	return w.until(e, t, "running", func(now app.TaskStatus) bool { return now.State == app.TaskRunning })
}

// release lets a waiting script continue.
func (w *world) release(t app.Task) {
	w.Helper()
	must.OK(w, os.WriteFile(w.out(t, "go"), nil, 0o600))
}

func (w *world) out(t app.Task, name string) string {
	return filepath.Join(t.Dir, task.WorkDir, task.OutDir, name)
}

func (w *world) text(path string) string {
	w.Helper()
	return must.Read(w, path)
}

// kill kills the process that runs the task.
func (w *world) kill(t app.Task) {
	w.Helper()
	run, err := task.ReadRun(t.Dir)
	must.OK(w, err)
	must.OK(w, run.Signal(syscall.SIGKILL))
}

// elsewhere changes the task's files as if another machine ran it.
func (w *world) elsewhere(t app.Task) {
	w.Helper()
	path := filepath.Join(t.Dir, task.RunFile)
	text, err := os.ReadFile(path)
	must.OK(w, err)
	boot, err := process.BootID()
	must.OK(w, err)
	text = bytes.Replace(text, []byte(boot), []byte("00000000-another-machine"), 1)
	must.OK(w, errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)))
}

// jobs returns ID and state of each job with that name.
func (w *world) jobs(name string) []string {
	w.Helper()
	out := w.cluster.Run(w, "squeue", "--noheader", "--states=all", "--array", "--name="+name, "--format=%i %T")
	return strings.Fields(strings.ReplaceAll(out, " ", ":"))
}

// standIn replaces one of Slurm's commands with a script, for executors created
// afterwards. In the script, $real is the real command and $calls a file for its use.
func (w *world) standIn(command, script string) (calls string) {
	w.Helper()
	dir := w.TempDir()
	calls = filepath.Join(dir, "calls")
	search := w.options.Path
	if search == "" {
		search = os.Getenv("PATH")
	}
	text := fmt.Sprintf("#!/bin/bash\ncalls='%s'\nreal=$(PATH='%s' command -v %s)\n%s\n", calls, search, command, script)
	must.Program(w, filepath.Join(dir, command), text)
	w.options.Path = dir + ":" + search
	return calls
}

// lines counts the lines of a file; 0 if it does not exist.
func (w *world) lines(path string) int {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}
