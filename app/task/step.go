package task

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// output is what carries a program's words to the log: the program's end of a
// pipe, and a goroutine at ours.
type output struct {
	pipe *os.File
	done chan struct{}
}

// outputPatience bounds the wait for output after the last process ended.
// Only a pipe that was passed on to a foreign process is still open then.
const outputPatience = 5 * time.Second

// start starts the step's program and the reading of its output.
func (w *watch) start() (*output, error) {
	path, err := lookUp(w.step.Argv, w.env, w.work)
	if err != nil {
		return nil, err
	}
	from, errs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer errs.Close()
	out := errs
	if w.step.Stdout != "" {
		if out, err = createStdout(w.work, w.step.Stdout); err != nil {
			return nil, errors.Join(err, from.Close())
		}
		defer out.Close()
	}
	if w.isolation.Bubblewrap != "" {
		err = w.startInside(path, out, errs)
	} else {
		err = w.startPlain(path, out, errs)
	}
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	return w.read(from), nil
}

func (w *watch) startInside(path string, out, errs *os.File) (err error) {
	if w.box, err = w.enter(path, w.step, out, errs); err == nil {
		w.leader, w.toldEnd = w.box.leader, w.box.ended
	}
	return err
}

// startPlain starts the program where it sees the whole machine.
func (w *watch) startPlain(path string, out, errs *os.File) error {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer in.Close()
	err = withFileLimit(w.isolation.FileBytes, func() (err error) {
		w.leader, err = w.forkExec(path, w.step.Argv, &syscall.ProcAttr{
			Dir:   w.work,
			Env:   w.env,
			Files: []uintptr{in.Fd(), out.Fd(), errs.Fd()},
		})
		return err
	})
	if err != nil {
		return explainStart(w.step.Argv[0], err)
	}
	// For good: a program could raise what it has inherited.
	if err := limitFiles(w.leader, w.isolation.FileBytes); err != nil && !errors.Is(err, syscall.ESRCH) {
		fmt.Fprintln(os.Stderr, err) // it runs: that is worth more than the limit
	}
	return nil
}

// forkExec starts a process in a session of its own, and in the task's cgroup
// where there is one. It dies with this process, which holds the thread that
// forks for that reason.
func (s *shim) forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	start := func() (int, error) { return syscall.ForkExec(path, argv, attr) }
	if s.isolation.Cgroup != "" {
		start = func() (int, error) { return s.forkExecInGroup(path, argv, attr) }
	}
	pid, err := start()
	for n := 1; n < groupTries && errors.Is(err, syscall.ENODEV); n++ {
		pid, err = start() // the empty cgroup was swept away
	}
	if err != nil {
		return 0, err
	}
	expendable(pid)
	return pid, nil
}

// groupTries bounds the tries to get into a cgroup before somebody, who takes it
// for a leftover, removes it.
const groupTries = 5

func (s *shim) forkExecInGroup(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	group, err := s.joinGroup(attr.Sys)
	if err != nil {
		return 0, err
	}
	defer group.Close()
	return syscall.ForkExec(path, argv, attr)
}

// joinGroup makes the task's cgroup, as often as there are steps.
func (s *shim) joinGroup(attr *syscall.SysProcAttr) (*os.File, error) {
	g, err := makeGroup(s.isolation.Cgroup, s.spec.Token, groupLimits{s.spec.MemoryBytes, s.isolation.Processes})
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, syscall.ENODEV // as when it goes a moment later
	}
	if err != nil {
		return nil, fmt.Errorf("open the task's cgroup: %w", err)
	}
	s.group = g
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	return dir, nil
}

// expendable makes the kernel take this process where memory runs out, rather
// than the service. It may be forbidden, and the process may have ended.
func expendable(pid int) {
	os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), []byte("500"), 0)
}

// read moves what arrives in the pipe to the log.
func (s *shim) read(pipe *os.File) *output {
	o := &output{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		filter := &progressFilter{out: s.log, report: s.progress.set}
		// It ends when the last writer is gone, or by finish.
		io.CopyBuffer(filter, struct{ io.Reader }{pipe}, make([]byte, 64<<10))
		filter.Flush()
	}()
	return o
}

// finish waits for the last words of a step whose processes are all gone.
func (o *output) finish() error {
	o.pipe.SetReadDeadline(time.Now().Add(outputPatience))
	<-o.done
	return o.pipe.Close()
}

// lookUp finds the program as execvp would in the task's environment, but
// never in the current directory, where a user's files lie.
func lookUp(argv, env []string, work string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("the step has no program; correct the algorithm's command")
	}
	name := argv[0]
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name, nil
		}
		return filepath.Join(work, name), nil
	}
	for _, dir := range filepath.SplitList(variable(env, "PATH")) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("the program %q was not found; install it or put its folder into PATH", name)
}

func variable(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// explainStart makes a sentence of what the kernel said.
func explainStart(program string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("the program %q was not found, or the interpreter that it names; install it", program)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("the program %q may not be executed; check its permissions", program)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("the program %q is not made for this machine, or is a script without #! in its first line", program)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("the arguments of %q are too long; pass them in a file", program)
	}
	return fmt.Errorf("the program %q could not be started: %w", program, err)
}

// createStdout makes the file that takes a step's standard output, always
// below the work directory: earlier steps may have put links there, which
// os.Root does not follow out of it, and pipes, which would block.
func createStdout(work, name string) (*os.File, error) {
	path := name
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(work, name)
		if err != nil {
			return nil, fmt.Errorf("the output file %q: %w", name, err)
		}
		path = rel
	}
	if !filepath.IsLocal(path) || path == "." {
		return nil, fmt.Errorf("the output file %q is outside of the work directory; correct the algorithm's stdout", name)
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, fmt.Errorf("the output file %q: %w", name, err)
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("the output file %q: %w", name, err)
	}
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the output file %q: %w", name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is there already and no file")
	}
	if err != nil {
		return nil, fmt.Errorf("the output file %q: %w", name, errors.Join(err, f.Close()))
	}
	return f, nil
}
