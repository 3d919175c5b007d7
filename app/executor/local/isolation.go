package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/task/container"
	"molrun/app/task/process"
	"molrun/app/task/sandbox"
)

// probeTimeout bounds the tests of what this machine supports.
const probeTimeout = 30 * time.Second

// The values of runner.sandbox in the configuration.
const (
	SandboxAuto     = "auto"     // use a sandbox if possible
	SandboxRequired = "required" // start no job without a sandbox
	SandboxOff      = "off"
)

// IsolationOptions configures the isolation of jobs.
type IsolationOptions struct {
	Sandbox   string   // SandboxAuto, SandboxRequired or SandboxOff
	Cgroup    string   // parent of the jobs' cgroups; "" means the cgroup of this process
	Processes int      // maximum number of a job's processes; 0 means no limit
	FileBytes int64    // maximum size of a job's file; 0 means no limit
	Reserve   int64    // bytes of disk space that jobs leave free; 0 means no limit
	Hide      []string // absolute paths hidden from every program

	Containers  container.Options // how images are run
	ModulesInit string            // script that defines the module command; "" means an installed one
}

// Isolation describes how jobs are isolated from the rest of the machine and from each
// other, and why they are not isolated better.
type Isolation struct {
	task.Isolation
	Missing []string // what is missing and why, one entry for each missing feature
	Gaps    []string // the entries of Missing that are gaps in the sandbox
}

// Isolate tests what isolation this machine supports, and prepares the parent of the
// jobs' cgroups. It fails if a sandbox is required but not possible.
func Isolate(ctx context.Context, o IsolationOptions) (Isolation, error) {
	i, err := ProbeSandbox(ctx, o)
	if err != nil {
		return i, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	i.findCgroup(ctx, o)
	return i, nil
}

// ProbeSandbox is like Isolate, for the sandbox alone, and changes nothing on the
// machine.
func ProbeSandbox(ctx context.Context, o IsolationOptions) (Isolation, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	i := Isolation{Isolation: task.Isolation{
		Processes: int64(o.Processes), FileBytes: o.FileBytes, Reserve: o.Reserve, Hide: o.Hide, Containers: o.Containers, ModulesInit: o.ModulesInit,
	}}
	if o.Sandbox == SandboxOff {
		i.lacks("no sandbox, since runner.sandbox is off")
	} else if err := i.findSandbox(ctx, o); err != nil && o.Sandbox == SandboxRequired {
		return i, fault.Errorf(fault.Invalid, `runner.sandbox is "required" but no sandbox is available: %v; or set runner.sandbox to "auto"`, err)
	} else if err != nil {
		i.lacks("no sandbox: %v", err)
	}
	return i, nil
}

func (i *Isolation) lacks(format string, args ...any) {
	i.Missing = append(i.Missing, fmt.Sprintf(format, args...))
}

func (i *Isolation) findSandbox(ctx context.Context, o IsolationOptions) error {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return errors.New("bwrap is not on PATH, install the package bubblewrap")
	}
	sized, err := sandbox.Probe(ctx, bwrap)
	if err != nil {
		return fmt.Errorf("%s fails (%w), allow unprivileged user namespaces to this service", bwrap, err)
	}
	i.Bubblewrap, i.Sized = bwrap, sized
	i.noteGaps(process.CanDenyCalls())
	return nil
}

// noteGaps records what the sandbox leaves open.
func (i *Isolation) noteGaps(filters bool) {
	if !filters {
		i.Gaps = append(i.Gaps, "system calls are not filtered, since the kernel lacks seccomp")
	}
	if !i.Sized {
		i.Gaps = append(i.Gaps, "short jobs of a batch can create user namespaces, which bubblewrap 0.8 or newer prevents (--disable-userns)")
	}
	i.Missing = append(i.Missing, i.Gaps...)
}

func (i *Isolation) findCgroup(ctx context.Context, o IsolationOptions) {
	parent, missing, err := jobsCgroup(o.Cgroup)
	if err == nil {
		err = sandbox.ProbeCgroup(ctx, parent)
	}
	if err != nil {
		i.lacks("no cgroup: %v; delegate one to this service", err)
		return
	}
	i.Cgroup = parent
	i.Missing = append(i.Missing, missing...)
}

// Sentence describes to an operator the isolation in effect, and why it is not better.
func (i Isolation) Sentence() string {
	var s string
	switch {
	case i.Bubblewrap != "" && i.Cgroup != "":
		s = "Each job runs in its own bubblewrap sandbox and cgroup"
	case i.Bubblewrap != "":
		s = "Each job runs in a bubblewrap sandbox"
	case i.Cgroup != "":
		s = "Each job runs in its own cgroup, with the same file access as the service"
	default:
		s = "Jobs run as plain processes with the same file access as the service; an environment variable identifies processes to kill"
	}
	if len(i.Missing) > 0 {
		s += " (" + strings.Join(i.Missing, "; ") + ")"
	}
	return s + "."
}
