package task

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"molrun/app/task/process"
)

// streams holds the standard files of a program.
type streams struct{ stdin, stdout, stderr *os.File }

// startProgram starts the step's program and starts reading its output.
func (r *runningStep) startProgram() (*output, error) {
	path, err := r.program()
	if err != nil {
		return nil, err
	}
	start := r.startPlain
	if r.isolation.sandboxed() {
		start = r.startSandboxed
	}
	pipe, stderr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	if err := r.startWith(path, stderr, start); err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	return r.readOutput(pipe), nil
}

func (r *runningStep) startWith(path string, stderr *os.File, start func(string, streams) error) (err error) {
	io := streams{stdout: stderr, stderr: stderr}
	if r.step.Stdin != "" {
		if io.stdin, err = openToRead(r.work, r.step.Stdin); err != nil {
			return err
		}
		defer io.stdin.Close()
	}
	if r.step.Stdout != "" {
		if io.stdout, err = createStdout(r.work, r.step.Stdout); err != nil {
			return err
		}
		defer io.stdout.Close()
	}
	if err := makeFolder(r.work, r.folder()); err != nil {
		return err
	}
	return start(path, io)
}

// folder returns the program's current directory.
func (r *runningStep) folder() string { return cmp.Or(r.step.Folder, r.work) }

// program finds the step's program. If that is molrun itself, the step runs the file that
// runs the task, even if another version is now installed under its path.
func (r *runningStep) program() (string, error) {
	if own := r.spec.Program; own != "" && len(r.step.Argv) > 0 && r.step.Argv[0] == own {
		return process.Self, nil
	}
	if r.isolation.Runtime != nil {
		return "", nil // it is looked up inside
	}
	return process.LookUp(r.step.Argv, r.env, r.work)
}

// startPlain starts the program without a sandbox, so that it sees the whole machine.
func (r *runningStep) startPlain(path string, io streams) error {
	if io.stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer null.Close()
		io.stdin = null
	}
	err := process.WithFileSizeLimit(r.isolation.FileBytes, func() (err error) {
		r.leader, err = r.forkExec(path, r.step.Argv, &syscall.ProcAttr{
			Dir:   r.folder(),
			Env:   r.env,
			Files: []uintptr{io.stdin.Fd(), io.stdout.Fd(), io.stderr.Fd()},
		})
		return err
	})
	if err != nil {
		return process.StartError(r.step.Argv[0], err)
	}
	// A program could raise an inherited limit, but not this one.
	if err := process.LimitFileSize(r.leader, r.isolation.FileBytes); err != nil && !errors.Is(err, syscall.ESRCH) {
		fmt.Fprintln(os.Stderr, err) // not worth failing a running program
	}
	return nil
}

// cgroupAttempts limits the attempts to start a process in the task's cgroup before
// cleanup removes it as an orphan.
const cgroupAttempts = 5

// forkExec starts a process in its own session, and in the task's cgroup if there is one.
// The process dies with the thread that forks it, which exists as long as this process.
func (s *shim) forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	fork := forkExec
	if s.isolation.Cgroup != "" {
		fork = s.forkExecInCgroup
	}
	pid, err := fork(path, argv, attr)
	for n := 1; n < cgroupAttempts && errors.Is(err, syscall.ENODEV); n++ {
		pid, err = fork(path, argv, attr) // cleanup has removed the empty cgroup
	}
	return pid, err
}

// forkExec is the shim's forkExec for processes that belong to no task's cgroup or to
// that of attr.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	if attr.Sys == nil {
		attr.Sys = &syscall.SysProcAttr{}
	}
	attr.Sys.Setsid, attr.Sys.Pdeathsig = true, syscall.SIGKILL
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, err
	}
	process.PreferOOMKill(pid)
	return pid, nil
}

// runtimeMemory is the memory that the container runtime itself uses in the task's
// cgroup.
const runtimeMemory = 128 << 20

// openCgroup makes the task's cgroup, which every step does, and opens its directory.
func (s *shim) openCgroup() (*os.File, error) {
	limits := process.CgroupLimits{MemoryBytes: s.spec.MemoryBytes, Processes: s.isolation.Processes}
	if limits.MemoryBytes > 0 && s.isolation.Runtime != nil {
		limits.MemoryBytes += runtimeMemory
	}
	cgroup, err := process.MakeCgroup(s.isolation.Cgroup, s.spec.Token, limits)
	if err != nil {
		return nil, err
	}
	dir, err := cgroup.OpenDir()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, syscall.ENODEV // as if it had been removed a moment later
	}
	if err != nil {
		return nil, fmt.Errorf("open the task's cgroup: %w", err)
	}
	s.cgroup = cgroup
	return dir, nil
}

func (s *shim) forkExecInCgroup(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	dir, err := s.openCgroup()
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	attr.Sys = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	pid, err := forkExec(path, argv, attr)
	if errors.Is(err, syscall.ENOENT) && s.cgroup.Gone() {
		err = syscall.ENODEV // the kernel's error depends on the progress of the removal
	}
	return pid, err
}

// removeCgroup removes the task's cgroup, if it has one.
func (s *shim) removeCgroup() error {
	if s.cgroup == nil {
		return nil
	}
	return s.cgroup.Remove()
}
