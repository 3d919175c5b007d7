package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"molrun/app/task/container"
	"molrun/app/task/place"
	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/task/sandbox"
)

// startSandboxed starts the program in a sandbox: in the shared one if possible,
// otherwise in a separate one.
func (r *runningStep) startSandboxed(path string, io streams) error {
	c, p := r.sandboxConfig(io), r.inside(path)
	err := r.startShared(c, p)
	if !errors.Is(err, place.ErrIncompatible) {
		return err
	}
	return r.startIn(c, p)
}

// startShared starts the program in the shared sandbox. It returns ErrIncompatible if the
// program needs a separate one.
func (r *runningStep) startShared(c sandbox.Config, p sandbox.Program) (err error) {
	if r.shared.incompatible || r.isolation.Bubblewrap == "" || r.isolation.hasExternalPrograms() {
		return place.ErrIncompatible
	}
	for range cgroupAttempts {
		if err = r.startInShared(c, p); !errors.Is(err, errNoCgroup) {
			return err
		}
	}
	return place.ErrIncompatible // the separate sandbox will report why there is no cgroup
}

// errNoCgroup means that there is no cgroup, or that cleanup removed it while it was
// empty.
var errNoCgroup = errors.New("the task has no cgroup")

// startInShared starts the program in the shared sandbox, and creates that if necessary.
// The error can be ErrIncompatible or errNoCgroup.
func (r *runningStep) startInShared(c sandbox.Config, p sandbox.Program) (err error) {
	if r.isolation.Cgroup != "" {
		if c.Cgroup, err = r.openCgroup(); err != nil {
			return fmt.Errorf("%w: %w", errNoCgroup, err)
		}
		defer c.Cgroup.Close()
	}
	shared := &r.shared
	if !shared.box.CanHost(c, p) {
		shared.discard()
	}
	if shared.box == nil && shared.above == "" {
		return place.ErrIncompatible
	}
	if shared.box == nil {
		of := c
		of.Fork = forkExec // it belongs to no task's cgroup
		if shared.box, err = sandbox.MakeShared(of, p, shared.above); err != nil {
			return r.stopSharing(err)
		}
	}
	c.Shared, c.CPUs = shared.box, r.spec.CPUSet
	shared.busy = true
	if err = r.startIn(c, p); err == nil {
		return nil
	}
	shared.busy = false
	switch {
	case !errors.Is(err, place.ErrIncompatible):
		return err
	case c.Cgroup != nil && r.cgroup.Gone():
		return errNoCgroup
	}
	return r.stopSharing(err)
}

// stopSharing logs why the sandbox can't be shared, and disables sharing for this
// process.
func (r *runningStep) stopSharing(err error) error {
	fmt.Fprintf(os.Stderr, "task %s: %v\n", r.dir, err)
	r.shared.incompatible = true
	r.shared.discard()
	return err
}

func (r *runningStep) startIn(c sandbox.Config, p sandbox.Program) error {
	s, err := sandbox.Start(c, p, r.sandboxStarted)
	if err != nil {
		return err
	}
	r.sandbox, r.leader = s, s.PID
	return nil
}

// endShared records that all processes of a step in the shared sandbox have exited.
func (r *runningStep) endShared(usage sandbox.Usage) {
	r.shared.box.AddUsage(usage)
	r.sharedCPUSeconds += usage.CPUSeconds
	r.largest = max(r.largest, usage.Largest)
	r.sandboxExited = true
	r.recordEnd(r.sandbox.SharedStatus())
}

// sandboxStarted records the sandbox before its program starts.
func (r *runningStep) sandboxStarted(first process.ID, container string) error {
	return writeUnsynced(r.dir, SandboxFile, sandboxRecord{Protocol, first, container, r.isolation.Runtime})
}

// inside returns the program as passed to the sandbox.
func (r *runningStep) inside(path string) sandbox.Program {
	return sandbox.Program{
		Path: path, Argv: r.argv(), Env: r.env, Dir: r.folder(), Image: r.isolation.Runtime != nil,
		Processes: r.isolation.Processes, FileBytes: r.isolation.FileBytes,
	}
}

// sandboxConfig describes the step's sandbox.
func (r *runningStep) sandboxConfig(io streams) sandbox.Config {
	c := sandbox.Config{
		Bubblewrap: r.isolation.Bubblewrap,
		Token:      r.spec.Token,
		Allowed:    r.allowed(),
		Own:        r.spec.Program,
		Work:       r.work,
		ReadOnly:   readOnlyInputs(r.work),
		Hide:       r.isolation.Hide,
		GPUs:       r.spec.grantedGPUs(),
		Cards:      r.spec.Cards,
		Stdin:      io.stdin, Stdout: io.stdout, Stderr: io.stderr,
		Fork:   r.forkExec,
		Wanted: r.shouldContinue,
		Reaped: func() bool {
			return r.reapChildren(func(int, syscall.WaitStatus, syscall.Rusage) {}) || !r.shared.busy && r.shared.only()
		},
	}
	if r.isolation.Runtime != nil {
		c.Container = r.container()
	}
	c.Sized = r.isolation.Sized
	if c.Sized || c.Container != nil {
		c.SharedMemoryBytes = r.spec.MemoryBytes
	}
	return c
}

// SystemShows reports whether programs in a bubblewrap sandbox see a path of the machine,
// provided that it exists and is publicly readable.
func SystemShows(path string) bool { return sandbox.IsVisible(path) }

// allowed returns what programs can access, including the algorithm's folder.
func (r *runningStep) allowed() protocol.Sandbox {
	may := r.isolation.Sandbox
	if r.spec.Folder != "" {
		may.Read = append(slices.Clone(may.Read), r.spec.Folder)
	}
	return may
}

// container returns the container of the step.
func (r *runningStep) container() *sandbox.Container {
	return &sandbox.Container{
		Runtime: *r.isolation.Runtime, Image: r.image, Dir: r.dir, Job: r.spec.Job, Attempt: r.spec.Attempt,
		CPUs: r.spec.CPUSet, Memory: r.spec.MemoryBytes, Processes: r.isolation.Processes,
	}
}

// argv returns the program's command line. In a container, molrun has another path.
func (r *runningStep) argv() []string {
	if r.isolation.Runtime == nil || r.spec.Program == "" {
		return r.step.Argv
	}
	argv := slices.Clone(r.step.Argv)
	for i, arg := range argv {
		if arg == r.spec.Program {
			argv[i] = container.Inside + "/molrun"
		}
	}
	return argv
}

// shouldContinue reports whether the task should continue, at times when nothing else checks
// that.
func (s *shim) shouldContinue() bool {
	select {
	case <-s.termSignals:
		s.terminating = true
		s.interrupt()
	case <-s.ctx.Done():
		s.interrupt()
	case <-s.timeout:
		s.timedOut()
	case <-s.stopTicks:
		if s.pollStop() {
			s.interrupt()
		}
	default:
	}
	return s.outcome.Cause == ""
}

// readOnlyInputs returns the parts of the work directory that programs can only read. An
// earlier step might have replaced them, so links are not followed.
func readOnlyInputs(work string) []string {
	var inputs []string
	if info, err := os.Lstat(filepath.Join(work, InDir)); err == nil && info.IsDir() {
		inputs = append(inputs, filepath.Join(work, InDir))
	}
	if info, err := os.Lstat(filepath.Join(work, SettingsFile)); err == nil && info.Mode().IsRegular() {
		inputs = append(inputs, filepath.Join(work, SettingsFile))
	}
	return inputs
}

// sandboxRecord is the content of sandbox.json: the first process in the sandbox. When it
// has exited, so has everything inside.
type sandboxRecord struct {
	Protocol int `json:"protocol"`
	process.ID
	Container string             `json:"container,omitempty"` // its name; "" means no container
	Runtime   *container.Runtime `json:"runtime,omitempty"`
}

// AwaitSandboxEnd waits until the sandbox of a task whose own process has exited has
// ended, or ctx is done, and removes its container.
func AwaitSandboxEnd(ctx context.Context, dir string) error {
	r, err := readFile[sandboxRecord](dir, SandboxFile)
	if err != nil {
		return nil // no sandbox
	}
	if err := r.AwaitEnd(ctx); err != nil {
		return fmt.Errorf("the task's sandbox has not exited: %w", err)
	}
	if r.Runtime != nil {
		return r.Runtime.Remove(ctx, r.Container)
	}
	return nil
}

// sandboxed reports whether programs run in a sandbox of any kind.
func (i Isolation) sandboxed() bool { return i.Bubblewrap != "" || i.Runtime != nil }

// hasExternalPrograms reports whether a task's programs are in an image, in environment
// modules or in a conda environment.
func (i Isolation) hasExternalPrograms() bool {
	return i.Sandbox.Image != "" || len(i.Sandbox.Modules) > 0 || i.Sandbox.Conda != ""
}

// findImage finds or pulls the image of the task's programs.
func (s *shim) findImage(ctx context.Context) error {
	name, runtime := s.isolation.Sandbox.Image, s.isolation.Runtime
	id, err := runtime.Image(ctx, name)
	if err != nil && s.isolation.Containers.Pull == container.PullMissing && ctx.Err() == nil {
		if err = runtime.Pull(ctx, name); err == nil {
			id, err = runtime.Image(ctx, name)
		}
	}
	if err != nil {
		return err
	}
	s.outcome.Image = &protocol.Image{Name: name, ID: id}
	s.image = runtime.Kind.Runnable(name, id)
	return nil
}

// runPreparation runs slow preparations before the first step, and cancels them if the task is
// stopped.
func (s *shim) runPreparation(do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(preparePollInterval):
			if !s.shouldContinue() {
				cancel()
				return <-done
			}
		}
	}
}

// preparePollInterval is how often runPreparation checks whether the task was stopped.
const preparePollInterval = 20 * time.Millisecond
