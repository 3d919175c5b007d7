package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/executor/local"
	"molrun/app/task"
	"molrun/app/test/must"
	"molrun/app/test/need"
)

// TestCopyOfEtcStaysAsLongAsItsTask looks whether anything keeps the copy that a task's programs see, also
// while no service runs.
func TestCopyOfEtcStaysAsLongAsItsTask(t *testing.T) {
	i := machine(t, local.SandboxAuto)
	if i.Bubblewrap == "" {
		need.Skip(t, "%s", i.Sentence())
	}
	dir := filepath.Join(t.TempDir(), "etc")
	service := local.New(local.Options{Program: os.Args[0], Isolation: i, EtcDir: dir})
	a := newTask(t, "grep -c ' /etc ' /proc/self/mountinfo > out/mounts; mv out/mounts out/ready\n"+untilGo)
	a = start(t, service, a)
	must.OK(t, service.Close())
	untilExists(t, output(a, "ready"))
	if text, err := os.ReadFile(output(a, "ready")); err != nil || strings.TrimSpace(string(text)) != "1" {
		t.Errorf("the program sees %s copies of /etc, %v", text, err)
	}
	copies, err := os.ReadDir(dir)
	if err != nil || len(copies) != 1 {
		t.Fatalf("%d copies, %v; want one", len(copies), err)
	}
	kept := func() bool {
		f, err := os.Open(filepath.Join(dir, copies[0].Name()))
		must.OK(t, err)
		defer f.Close()
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
	}
	if !kept() {
		t.Error("nothing keeps the copy while the task runs")
	}
	touch(t, output(a, "go"))
	e := newExecutor(t)
	if now := over(t, e, a); now.Outcome == nil || now.Outcome.Cause != "done" {
		log, _ := os.ReadFile(filepath.Join(a.Dir, task.LogFile)) // for the message only
		t.Errorf("outcome %+v; log %s", now.Outcome, log)
	}
	must.Become(t, "release of the copy", func() bool { return !kept() })
}
