package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/executor/slurm"
	"molrun/app/test/must"
)

// noBubblewrap hides bwrap from the nodes, but keeps sh.
func (w *world) noBubblewrap() {
	w.Helper()
	w.options.NodePath = w.TempDir()
	for _, name := range []string{"sh", "sleep"} {
		path, err := exec.LookPath(name)
		must.OK(w, err)
		must.OK(w, os.Symlink(path, filepath.Join(w.options.NodePath, name)))
	}
}

func TestSandboxOnTheNode(t *testing.T) {
	must.Installed(t, "bwrap")
	const script = "if [ -e %s ]; then echo seen; else echo unseen; fi > out/sees"
	tests := []struct {
		sandbox string
		without bool // the node does not support sandboxes
		cause   app.Cause
		kind    string
		sees    string
	}{
		{slurm.SandboxAuto, false, app.CauseDone, "bubblewrap", "unseen\n"},
		{slurm.SandboxRequired, false, app.CauseDone, "bubblewrap", "unseen\n"},
		{slurm.SandboxOff, false, app.CauseDone, "none", "seen\n"},
		{slurm.SandboxAuto, true, app.CauseDone, "none", "seen\n"},
		{slurm.SandboxRequired, true, app.CauseCannotStart, "none", ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s, node without: %v", tt.sandbox, tt.without), func(t *testing.T) {
			w := newWorld(t)
			w.options.Sandbox = tt.sandbox
			if tt.without {
				w.noBubblewrap()
			}
			e := w.executor()
			a := w.start(e, w.task(fmt.Sprintf(script, filepath.Join(w.options.SharedDir, "submissions"))))
			o := w.ended(e, a)
			if o.Cause != tt.cause || o.Isolation != tt.kind {
				t.Fatalf("outcome %+v, want %s and isolation %s", o, tt.cause, tt.kind)
			}
			if tt.sees != "" && w.text(w.out(a, "sees")) != tt.sees {
				t.Errorf("the shared directory is %s", w.text(w.out(a, "sees")))
			}
			if tt.cause == app.CauseCannotStart && !strings.Contains(o.Message, "does not support sandboxes") {
				t.Errorf("message %q", o.Message)
			}
		})
	}
}

// Paths that the service hides from programs are hidden on nodes, too.
func TestSecretsOnTheNode(t *testing.T) {
	must.Installed(t, "bwrap")
	w := newWorld(t)
	dir := t.TempDir()
	secret, open := filepath.Join(dir, "tls.key"), filepath.Join(dir, "data")
	for _, path := range []string{secret, open} {
		must.OK(t, os.WriteFile(path, []byte("text\n"), 0o600))
	}
	w.options.Sandbox, w.options.Hide = slurm.SandboxRequired, []string{secret, filepath.Join(dir, "absent")}
	w.options.SandboxOf = func(context.Context, app.JobID) (app.Sandbox, error) {
		return app.Sandbox{Read: []string{dir}}, nil
	}
	e := w.executor()
	a := w.start(e, w.task(fmt.Sprintf("cat %s %s > out/sees || true", open, secret)))
	w.ends(e, a, app.CauseDone)
	must.Equal(t, "the program read", w.text(w.out(a, "sees")), "text\n")
}

func TestProgramIsCopiedOnceForEachVersion(t *testing.T) {
	w := newWorld(t)
	paths := map[string]bool{}
	for range 2 {
		path, err := w.executor().Program(t.Context())
		must.OK(t, err)
		paths[path] = true
	}
	other := filepath.Join(t.TempDir(), "molrun")
	must.OK(t, os.WriteFile(other, []byte("another version"), 0o700))
	w.options.Program = other
	path, err := w.executor().Program(t.Context())
	must.OK(t, err)
	if len(paths) != 1 || paths[path] || w.text(path) != "another version" {
		t.Errorf("copies %v, then %s", paths, path)
	}
	left, err := filepath.Glob(filepath.Join(w.options.SharedDir, "bin", "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("bin has %v, %v; want two files", left, err)
	}
}

func TestSweep(t *testing.T) {
	w := newWorld(t)
	first := w.executor()
	old, err := first.Program(t.Context())
	must.OK(t, err)
	kept := w.start(first, w.task(untilGo))
	gone := w.startAll(first, 3, "exit 0")
	for _, a := range gone {
		w.ended(first, a)
		must.OK(t, os.RemoveAll(a.Dir))
	}
	w.options.Program = filepath.Join(t.TempDir(), "molrun")
	must.OK(t, os.WriteFile(w.options.Program, []byte("the next version"), 0o700))
	e := w.executor()
	lists := func() []string {
		found, err := filepath.Glob(filepath.Join(w.options.SharedDir, "submissions", "*"))
		must.OK(t, err)
		return found
	}
	sweep := func(age time.Duration) {
		t.Helper()
		must.OK(t, e.CleanUp(t.Context(), age))
	}
	if sweep(time.Hour); len(lists()) != 4 {
		t.Errorf("after cleaning up old lists: %v", lists())
	}
	sweep(-time.Hour)
	if found := lists(); len(found) != 2 || !strings.HasSuffix(found[0], kept.Token) {
		t.Errorf("after a sweep of everything: %v", found)
	}
	if _, err := os.Stat(old); err != nil {
		t.Errorf("the program of a submitted task was removed: %v", err)
	}
	w.release(kept)
	w.ended(first, kept)
	must.OK(t, os.RemoveAll(kept.Dir))
	sweep(-time.Hour)
	if _, err := os.Stat(old); !os.IsNotExist(err) || len(lists()) != 0 {
		t.Errorf("left over: lists %v, old program (%v)", lists(), err)
	}
}

// TestThousandsOfTasksInFewCommands submits more tasks than fit into one array to a
// partition that is down, and stops them.
func TestThousandsOfTasksInFewCommands(t *testing.T) {
	const count, most = 2500, 1000
	w := newWorld(t)
	size := w.cluster.Run(t, "scontrol", "show", "config")
	if !strings.Contains(size, "MaxArraySize            = 1001\n") {
		w.standIn("scontrol", `[ "$2" = config ] && echo "MaxArraySize = 1001" && exit; exec $real "$@"`)
	}
	submits := w.standIn("sbatch", `echo >>$calls; exec $real "$@"`)
	cancels := w.standIn("scancel", `echo >>$calls; exec $real "$@"`)
	lists := w.standIn("squeue", `echo >>$calls; exec $real "$@"`)
	e := w.executor()
	w.cluster.Run(t, "scontrol", "update", "PartitionName=main", "State=DOWN")
	defer w.cluster.Run(t, "scontrol", "update", "PartitionName=main", "State=UP")
	tasks := w.bareTasks(count)
	begin := time.Now()
	if _, refused := w.startEach(e, tasks); len(refused) > 0 {
		t.Error(errors.Join(refused...))
	}
	t.Logf("%d tasks submitted by %d commands in %v", count, w.lines(submits), time.Since(begin))
	if n := w.lines(submits); n < (count+most-1)/most || n > (count+most-1)/most+1 {
		t.Errorf("%d calls of sbatch", n)
	}
	waiting := func(all []app.TaskStatus) (n int) {
		for _, s := range all {
			if s.State == app.TaskStarting && strings.Contains(s.Reason, "PartitionDown") {
				n++
			}
		}
		return n
	}
	must.Become(t, "all wait in Slurm", func() bool {
		all, err := e.Status(t.Context(), tasks)
		return err == nil && waiting(all) == count
	})
	asked := w.lines(lists)
	begin = time.Now()
	if _, err := e.Status(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	t.Logf("statuses of %d tasks in %v", count, time.Since(begin))
	if n := w.lines(lists) - asked; n > 1 {
		t.Errorf("squeue was called %d times for one query", n)
	}
	for _, a := range tasks {
		must.OK(t, e.Stop(t.Context(), a))
	}
	must.Become(t, "all are stopped", func() bool {
		all, err := e.Status(t.Context(), tasks)
		stopped := 0
		for i, s := range all {
			switch {
			case s.State < app.TaskEnded:
				must.OK(t, e.Stop(t.Context(), tasks[i]))
			case s.Outcome == nil || s.Outcome.Cause != app.CauseStopped:
				t.Fatalf("status %+v, want stopped", s)
			default:
				stopped++
			}
		}
		return err == nil && stopped == count
	})
	if n := w.lines(cancels); n > count/20 {
		t.Errorf("%d calls of scancel", n)
	}
}

// bareTasks returns tasks that never run.
func (w *world) bareTasks(n int) []app.Task {
	w.Helper()
	tasks := make([]app.Task, n)
	for i := range tasks {
		tasks[i] = app.Task{
			Job: "01JSLURM", Attempt: 1, Dir: w.dir(), Token: fmt.Sprintf("bare-%d-%d-%d", os.Getpid(), time.Now().UnixNano(), i),
			Needs: placement.Resources{CPUs: 1, MemoryBytes: 1 << 20}, Limit: time.Hour,
		}
	}
	return tasks
}

func TestMissingSharedDirectoryChangesNothing(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.start(e, w.task("exit 0"))
	w.untilQuiet([]app.Task{a})
	away := w.options.SharedDir + "-away"
	must.OK(t, os.Rename(w.options.SharedDir, away))
	t.Cleanup(func() { os.RemoveAll(away) })
	if all, err := e.Status(t.Context(), []app.Task{a}); err == nil {
		t.Errorf("status %+v of a task without a shared directory, want an error", all)
	}
	if _, err := e.Start(t.Context(), w.unmade()); err == nil {
		t.Error("a task was started without a shared directory")
	}
	must.OK(t, os.Rename(away, w.options.SharedDir))
	w.ends(e, a, app.CauseDone)
}

// unmade returns a task without a directory.
func (w *world) unmade() app.Task {
	return app.Task{Job: "01JSLURM", Attempt: 1, Dir: filepath.Join(w.options.SharedDir, "attempts", "none", "1"), Token: "unmade", Limit: time.Hour}
}

func TestRemovedCopyOfTheProgramIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	path, err := e.Program(t.Context())
	must.OK(t, err)
	must.OK(t, os.Remove(path))
	if again, err := e.Program(t.Context()); err != nil || again != path || w.text(path) == "" {
		t.Errorf("after its removal the copy is %q, %v; want %s", again, err, path)
	}
}

// A node waits until it sees the program.
func TestTaskWaitsForTheProgramOnItsNode(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.task("exit 0")
	a.Placement.Options = []string{"--hold"}
	a = w.start(e, a)
	path, err := e.Program(t.Context())
	must.OK(t, err)
	must.OK(t, os.Rename(path, path+"-away"))
	w.cluster.Run(t, "scontrol", "release", number(a))
	w.until(e, a, "on its node", func(app.TaskStatus) bool {
		return w.cluster.Run(t, "squeue", "--noheader", "--states=running", "--format=%i", "--jobs="+number(a)) != ""
	})
	must.OK(t, os.Rename(path+"-away", path))
	w.ends(e, a, app.CauseDone)
}
