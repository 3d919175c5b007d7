package task

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/task/gauge"
	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/task/sandbox"
	"molrun/app/test/containertest"
	"molrun/app/test/must"
)

// TestMain lets the test binary act as molrun and as a task's program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "task":
			exit(runTask(os.Args[2:]))
		case "attack":
			attack(os.Args[2:])
			exit(0)
		case "whoami":
			fmt.Println(os.Geteuid())
			exit(0)
		case "use":
			use(os.Args[2], len(os.Args) > 3)
			exit(0)
		}
	}
	// Parallel tests mostly wait. The command line overrides this value.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	containertest.Remove()
	os.Exit(code)
}

// runTask is `molrun task DIR [--lock-fd N] [--isolation TEXT]`, or the first
// process in a sandbox.
func runTask(args []string) int {
	if args[0] == "--inside" {
		first := func() error { return sandbox.Init(socketIn(args)) }
		if slices.Contains(args, "--shared") {
			first = sandbox.InitShared
		}
		if err := first(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	flags := flag.NewFlagSet("task", flag.ExitOnError)
	lock, isolation := flags.Int("lock-fd", 0, ""), flags.String("isolation", "", "")
	worker, unsynced := flags.Bool("worker", false, ""), flags.Bool("unsynced", false, "")
	flags.Parse(args[1:])
	i, err := ParseIsolation(*isolation)
	run := Run
	if *worker {
		run = RunWorker
	}
	if err == nil {
		err = run(context.Background(), args[0], Options{LockFD: *lock, Isolation: i, NewGauge: newGauge, Unsynced: *unsynced})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return ExitCode(err)
}

func newGauge(g protocol.ProgressParser, report func(protocol.Reading)) (ProgressParser, error) {
	return gauge.New(g, report)
}

// socketIn returns the value of --connect.
func socketIn(args []string) string {
	if len(args) == 3 && args[1] == "--connect" {
		return args[2]
	}
	return ""
}

// exit exits immediately. Under the race detector, os.Exit would sleep for a second.
func exit(code int) { syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0) }

// use is a program that uses 0.3 s of CPU time and this many MiB of memory, and then
// exits or, with wait, keeps the memory.
func use(mib string, wait bool) {
	n, _ := strconv.Atoi(mib)
	var usage syscall.Rusage
	for usage.Utime.Nano()+usage.Stime.Nano() < 3e8 {
		syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	}
	memory := make([]byte, n<<20)
	for i := 0; i < len(memory); i += 1 << 10 {
		memory[i] = 1
	}
	if wait {
		time.Sleep(time.Hour)
	}
	fmt.Println(memory[len(memory)/2])
}

// attempt is the directory of an attempt.
type attempt struct {
	t         *testing.T
	dir       string
	spec      Spec
	isolation Isolation
	env       []string   // environment of the process that runs the task
	files     []*os.File // inherited by this process, from descriptor 3
	after     *attempt   // task of the same worker that uses the sandbox before this one; nil if none
}

// newAttempt creates an attempt whose steps are the scripts.
func newAttempt(t *testing.T, scripts ...string) *attempt {
	t.Helper()
	return newAttemptIn(t, t.TempDir(), scripts...)
}

// newAttemptIn creates an attempt in a directory, which does not have to exist.
func newAttemptIn(t *testing.T, dir string, scripts ...string) *attempt {
	t.Helper()
	a := &attempt{t: t, dir: dir, env: os.Environ()}
	a.spec = Spec{Token: "token" + strings.ReplaceAll(a.dir, "/", "-"), Job: "01J", Attempt: 1, CPUs: 1, GraceSeconds: 20}
	for _, script := range scripts {
		a.spec.Steps = append(a.spec.Steps, protocol.Step{Argv: []string{"sh", "-c", script}})
	}
	for _, dir := range []string{"in", "out", "tmp"} {
		must.OK(t, os.MkdirAll(a.path(WorkDir, dir), 0o700))
	}
	return a
}

func (a *attempt) path(parts ...string) string {
	return filepath.Join(append([]string{a.dir}, parts...)...)
}

func (a *attempt) read(parts ...string) string {
	a.t.Helper()
	return must.Read(a.t, a.path(parts...))
}

// running is a process that runs a task.
type running struct {
	*attempt
	cmd  *exec.Cmd
	done chan error
}

// start starts the process that runs the task.
func (a *attempt) start() *running {
	a.t.Helper()
	must.OK(a.t, WriteSpec(a.dir, a.spec))
	return a.startAgain()
}

// startAgain starts the process without writing task.json.
func (a *attempt) startAgain() *running { return a.startWith(nil) }

// startWith passes the lock to the process; if lock is nil, the process takes it.
func (a *attempt) startWith(lock *os.File) *running {
	a.t.Helper()
	log, err := os.Create(a.path("shim.log"))
	must.OK(a.t, err)
	defer log.Close()
	r := &running{attempt: a, done: make(chan error, 1)}
	r.cmd = exec.Command(os.Args[0], "task", a.dir, "--isolation", a.isolation.String())
	if a.after != nil {
		worker := a.t.TempDir()
		must.OK(a.t, WriteSpec(a.after.dir, a.after.spec))
		must.OK(a.t, AssignTasks(worker, 1, []string{a.after.dir, a.dir}))
		must.OK(a.t, CloseWorker(worker))
		r.cmd = exec.Command(os.Args[0], "task", worker, "--worker", "--isolation", a.isolation.String())
	}
	if lock != nil {
		r.cmd.Args = append(r.cmd.Args, "--lock-fd", "3")
		a.files = []*os.File{lock}
	}
	r.cmd.ExtraFiles = a.files
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = a.env, log, log
	must.OK(a.t, r.cmd.Start())
	go func() { r.done <- r.cmd.Wait() }()
	a.t.Cleanup(func() {
		r.cmd.Process.Kill()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must.OK(a.t, process.KillMarked(ctx, a.spec.Token))
	})
	return r
}

// wait waits for the process that runs the task and returns its exit code.
func (r *running) wait() int {
	r.t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(must.Patience):
		r.t.Fatalf("the task does not end; log: %s", r.read(LogFile))
		return 0
	}
}

// outcome waits for the end of the task and checks the invariants: exit code 0, a free
// lock, and no remaining processes.
func (r *running) outcome() *protocol.Outcome {
	r.t.Helper()
	if code := r.wait(); code != 0 {
		r.t.Fatalf("the process exited with %d: %s", code, r.read("shim.log"))
	}
	if locked, err := Locked(r.dir); locked || err != nil {
		r.t.Errorf("after the end locked = %v, %v", locked, err)
	}
	if left, err := process.Marked(r.spec.Token); len(left) > 0 || err != nil {
		r.t.Errorf("after the end processes %v remain, %v", left, err)
	}
	o := r.ended()
	if o.EndedAt.Before(o.StartedAt) || o.StartedAt.IsZero() {
		r.t.Errorf("started at %v, ended at %v", o.StartedAt, o.EndedAt)
	}
	if r.after != nil {
		r.sharedSandbox()
	}
	return o
}

// ends waits for the end of the task, which must have this cause.
func (r *running) ends(want protocol.Cause) {
	r.t.Helper()
	if o := r.outcome(); o.Cause != want {
		r.t.Fatalf("outcome %+v, want %s; log %s", o, want, r.read(LogFile))
	}
}

// sharedSandbox checks that the task used the sandbox of the previous one, which
// succeeded.
func (r *running) sharedSandbox() {
	r.t.Helper()
	before, err := ReadOutcome(r.after.dir)
	if err != nil || before.Cause != protocol.CauseDone {
		r.t.Errorf("the task before ended with %+v, %v", before, err)
	}
	if r.has(SandboxFile) && firstOf(r.t, r.attempt) != firstOf(r.t, r.after) {
		r.t.Error("the tasks did not share a sandbox")
	}
}

// firstOf returns the first process in the task's sandbox.
func firstOf(t *testing.T, a *attempt) process.ID {
	t.Helper()
	record, err := readFile[sandboxRecord](a.dir, SandboxFile)
	must.OK(t, err)
	return record.ID
}

func (r *running) signal(sig syscall.Signal) {
	r.t.Helper()
	must.OK(r.t, r.cmd.Process.Signal(sig))
}

// release creates out/go, for which a script waits.
func (a *attempt) release() {
	a.t.Helper()
	must.OK(a.t, os.WriteFile(a.path(WorkDir, OutDir, "go"), nil, 0o600))
}

// has reports whether the attempt has the file.
func (a *attempt) has(parts ...string) bool {
	_, err := os.Stat(a.path(parts...))
	return !errors.Is(err, os.ErrNotExist)
}

// untilFile waits for a file of the attempt.
func (a *attempt) untilFile(parts ...string) {
	a.t.Helper()
	must.Become(a.t, filepath.Join(parts...), func() bool { return a.has(parts...) })
}
