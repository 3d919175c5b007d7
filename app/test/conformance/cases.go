package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

func (s *suite) outcomes() {
	codes := []int{3, 0, 7}
	tasks := []app.Task{s.start(s.task("exit 3")), s.start(s.task("exit 0")), s.start(s.task("exit 7"))}
	for _, t := range tasks {
		s.ended(t)
	}
	for i, now := range s.status(tasks...) {
		want := app.CauseExit
		if codes[i] == 0 {
			want = app.CauseDone
		}
		if o := now.Outcome; o == nil || o.ExitCode != codes[i] || o.Cause != want {
			s.Errorf("task %d: %+v, want exit code %d", i, o, codes[i])
		}
	}
	if all := s.status(); len(all) != 0 {
		s.Errorf("statuses of no tasks: %v", all)
	}
}

func (s *suite) cannotStart() {
	o := s.ended(s.start(s.taskOf("no-such-program")))
	if o.Cause != app.CauseCannotStart || o.Message == "" {
		s.Errorf("outcome %+v, want cannot_start and why", o)
	}
}

func (s *suite) signalled() {
	o := s.ended(s.start(s.task("kill -SEGV $$")))
	if o.Cause != app.CauseSignal || o.Signal != "SIGSEGV" {
		s.Errorf("outcome %+v, want signal SIGSEGV", o)
	}
}

func (s *suite) tooLong() {
	o := s.ended(s.start(s.taskWith(task.Spec{Steps: script("trap 'echo > out/asked; exit 0' TERM\n" + waiting), MaxRuntimeSeconds: 1})))
	if o.Cause != app.CauseTimeout {
		s.Errorf("outcome %+v, want timeout", o)
	}
}

func (s *suite) tooLarge() {
	const most = 64 << 20
	eats := "head -c 110M /dev/zero | tail -c 110M | (" + waiting + ")" // tail buffers all of its input
	o := s.ended(s.start(s.taskWith(task.Spec{Steps: script(eats), MemoryBytes: most})))
	if o.Cause != app.CauseMemory || o.MaxRSSBytes < most {
		s.Errorf("outcome %+v, want memory, and more than %d bytes", o, most)
	}
}

func script(text string) []app.Step {
	return []app.Step{{Name: "only", Argv: []string{"sh", "-c", text}}}
}

func (s *suite) logged() {
	t := s.start(s.task("echo so far\n" + waiting + "echo and on"))
	log := func() string {
		text, err := os.ReadFile(filepath.Join(t.Dir, task.LogFile))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.Fatal(err)
		}
		return string(text)
	}
	s.until(t, "in the log", func(app.TaskStatus) bool { return log() == "so far\n" })
	if now := s.running(t); now.Outcome != nil {
		s.Errorf("status %+v while the task runs", now)
	}
	s.release(t)
	s.ended(t)
	if log() != "so far\nand on\n" {
		s.Errorf("log %q", log())
	}
}

func (s *suite) output() {
	t := s.start(s.task("mkdir out/d && printf 12345 > out/d/file && : > out/empty"))
	o := s.ended(t)
	if o.Cause != app.CauseDone || o.OutputFiles != 2 || o.OutputBytes != 5 {
		s.Errorf("outcome %+v, want 2 files with 5 bytes", o)
	}
	text, err := os.ReadFile(filepath.Join(t.Dir, task.WorkDir, task.OutDir, "d", "file"))
	if err != nil || string(text) != "12345" {
		s.Errorf("output %q, %v", text, err)
	}
}

func (s *suite) progress() {
	t := s.start(s.task("echo molrun:progress 0.5 half way\n" + waiting))
	now := s.until(t, "half way", func(now app.TaskStatus) bool { return now.Progress != nil })
	if now.State != app.TaskRunning || now.StartedAt.IsZero() || *now.Progress != (app.Progress{Fraction: 0.5, Text: "half way"}) {
		s.Errorf("status %+v, progress %+v; want running and half way", now, now.Progress)
	}
	s.release(t)
	s.ends(t, app.CauseDone)
	s.searched()
}

// searched runs a program whose progress is parsed from its output.
func (s *suite) searched() {
	steps := append(script("true"), script(`printf 'begin\rstep 30, left 2 s'`+"\n"+waiting)...)
	steps[1].Name, steps[1].Span = "run", &protocol.Span{From: 0.5, Share: 0.5}
	steps[1].Gauge = &protocol.ProgressParser{Pattern: `step (\d+)`, Of: 60}
	t := s.start(s.taskWith(task.Spec{Steps: steps}))
	want := app.Progress{Fraction: 0.75, Text: "step 2 of 2: run, 30 of 60"}
	s.until(t, "half of the second step", func(now app.TaskStatus) bool { return now.Progress != nil && *now.Progress == want })
	s.release(t)
	s.ends(t, app.CauseDone)
}

func (s *suite) stopped() {
	t := s.start(s.task(`trap 'echo > out/asked; exit 0' TERM; echo > out/ready` + "\n" + waiting))
	s.untilHas(t, "ready")
	for range 3 { // stopping again is harmless
		must.OK(s, s.executor.Stop(s.Context(), t))
	}
	s.ends(t, app.CauseStopped)
	if !s.has(t, "asked") {
		s.Error("the program was not asked to terminate")
	}
}

// stoppedEarly stops the task before it is known to have started. It might then have no
// outcome.
func (s *suite) stoppedEarly() {
	t := s.start(s.task(waiting))
	must.OK(s, s.executor.Stop(s.Context(), t))
	now := s.until(t, "over", func(now app.TaskStatus) bool {
		must.OK(s, s.executor.Stop(s.Context(), t))
		return now.State >= app.TaskEnded
	})
	if now.State == app.TaskEnded && now.Outcome.Cause != app.CauseStopped {
		s.Errorf("outcome %+v, want stopped", now.Outcome)
	}
}

func (s *suite) stoppedLate() {
	t := s.start(s.task("exit 5"))
	before := s.ended(t)
	must.OK(s, s.executor.Stop(s.Context(), t))
	must.Equal(s, "outcome", s.ended(t), before)
	must.OK(s, os.RemoveAll(t.Dir))
	if err := s.executor.Stop(s.Context(), t); err != nil {
		s.Errorf("stop of a task whose directory was deleted: %v", err)
	}
}

func (s *suite) adopted() {
	t := s.start(s.task("echo > out/ready\n" + waiting + "exit 4"))
	s.untilHas(t, "ready")
	before := s.running(t)
	s.executor = s.New(s.T)
	for _, handle := range []app.Handle{t.Handle, ""} { // the service can die before it stores the handle
		t.Handle = handle
		if now := s.status(t)[0]; now.State != app.TaskRunning || !now.StartedAt.Equal(before.StartedAt) {
			s.Errorf("with handle %q: status %+v, want running since %v", handle, now, before.StartedAt)
		}
	}
	s.release(t)
	s.exits(t, 4)
}

func (s *suite) collected() {
	t := s.start(s.task(waiting + "exit 6"))
	s.running(t)
	s.release(t) // while no executor is watching
	must.Become(s, "an outcome", func() bool { return task.Exists(t.Dir, task.OutcomeFile) })
	s.executor = s.New(s.T)
	s.exits(t, 6)
}

func (s *suite) startedTwice() {
	t := s.start(s.task("echo once >> out/count; echo > out/ready\n" + waiting))
	s.untilHas(t, "ready")
	if _, err := s.executor.Start(s.Context(), t); err != nil {
		s.Errorf("start of a running task: %v", err)
	}
	s.release(t)
	s.ended(t)
	if _, err := s.executor.Start(s.Context(), t); err != nil {
		s.Errorf("start of an ended task: %v", err)
	}
	s.ended(t)
	count, err := os.ReadFile(filepath.Join(t.Dir, task.WorkDir, "out", "count"))
	if err != nil || string(count) != "once\n" {
		s.Errorf("the program ran as %q, %v", count, err)
	}
}

func (s *suite) neverStarted() {
	t := s.task("echo > out/ran")
	if err := s.executor.Stop(s.Context(), t); err != nil {
		s.Errorf("stop: %v", err)
	}
	if now := s.status(t)[0]; now.State != app.TaskLost || now.Reason == "" {
		s.Errorf("status %+v, want lost and why", now)
	}
	if s.has(t, "ran") {
		s.Error("it ran")
	}
}

func (s *suite) concurrent() {
	tasks := make([]app.Task, 8)
	var callers sync.WaitGroup
	for i := range tasks {
		tasks[i] = s.task(fmt.Sprintf("exit %d", i))
		callers.Go(func() {
			h, err := s.executor.Start(s.Context(), tasks[i])
			if err != nil {
				s.Error(err)
			}
			tasks[i].Handle = h
			if _, err := s.executor.Status(s.Context(), tasks[i:i+1]); err != nil {
				s.Error(err)
			}
			if err := s.executor.Stop(s.Context(), app.Task{Dir: filepath.Join(tasks[i].Dir, "none"), Token: "none"}); err != nil {
				s.Error(err)
			}
		})
	}
	callers.Wait()
	for i, t := range tasks {
		s.exits(t, i)
	}
}
