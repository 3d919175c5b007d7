package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/executor/slurm"
	_ "molrun/app/task/gauged" // the test binary runs tasks, as molrun does
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

var daemons cluster.Shared

// TestMain lets the test binary act as molrun. `version` exits without os.Exit, which
// sleeps for a second under the race detector, whose settings are not passed to a job.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	code := m.Run()
	if err := daemons.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// world is a cluster with a shared directory.
type world struct {
	*testing.T
	cluster *cluster.Cluster
	options slurm.Options
	tasks   atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, daemons.Start(t))
}

func worldOn(t *testing.T, c *cluster.Cluster) *world {
	t.Helper()
	shared := t.TempDir()
	t.Cleanup(func() { // canceled jobs may still be writing
		must.Become(t, "the shared folder is removed", func() bool { return os.RemoveAll(shared) == nil })
	})
	return &world{T: t, cluster: c, options: slurm.Options{
		SharedDir: shared, Program: os.Args[0], SlurmConf: c.Conf, Sandbox: slurm.SandboxOff,
		Poll: 200 * time.Millisecond, LostAfter: 2 * time.Second, Late: 2 * time.Second, Grace: 2 * time.Second,
		Log: func(message string, fields ...any) { t.Log(append([]any{message}, fields...)...) },
	}}
}

// executor returns an executor, as a starting service creates it.
func (w *world) executor() *slurm.Executor {
	w.Helper()
	e, err := slurm.New(w.options)
	must.OK(w, err)
	w.Cleanup(func() {
		must.OK(w, e.Close())
	})
	return e
}

// dir creates an attempt's directory.
func (w *world) dir() string {
	w.Helper()
	dir := filepath.Join(w.options.SharedDir, "attempts", fmt.Sprintf("JOB%d", w.tasks.Add(1)), "1")
	must.OK(w, os.MkdirAll(dir, 0o700))
	return dir
}

// patience bounds every wait of these tests.
const patience = must.Patience

var _ app.Remote = (*slurm.Executor)(nil)
