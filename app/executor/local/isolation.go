package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"molrun/app/fault"
	"molrun/app/task"
)

// isolatePatience bounds finding out what this machine can do.
const isolatePatience = 30 * time.Second

// The wishes for a sandbox, as in the configuration.
const (
	SandboxAuto     = "auto"     // where it can be had
	SandboxRequired = "required" // else nothing starts
	SandboxOff      = "off"
)

// IsolationOptions say how jobs are to be kept from the rest of the machine.
type IsolationOptions struct {
	Program   string // this program's path
	Sandbox   string // SandboxAuto, SandboxRequired or SandboxOff
	Cgroup    string // the cgroup below which jobs get theirs; "": this process's own
	Processes int    // that a job may have at once; 0 is no limit
	FileBytes int64  // how large a file of a job may become; 0 is no limit
}

// Isolation is how jobs are kept from the rest of the machine and from each
// other, and why not better.
type Isolation struct {
	task.Isolation
	Lacks []string // a part of a sentence for each thing
}

// Isolate finds out, by trying, what isolation this machine can give, and makes
// room for the cgroups of jobs. It fails where a sandbox is required and can't be
// had.
func Isolate(ctx context.Context, o IsolationOptions) (Isolation, error) {
	i, err := Sandboxed(ctx, o)
	if err != nil {
		return i, err
	}
	ctx, cancel := context.WithTimeout(ctx, isolatePatience)
	defer cancel()
	i.tryCgroup(ctx, o)
	return i, nil
}

// Sandboxed does so for the sandbox alone, and changes nothing on the machine.
func Sandboxed(ctx context.Context, o IsolationOptions) (Isolation, error) {
	ctx, cancel := context.WithTimeout(ctx, isolatePatience)
	defer cancel()
	i := Isolation{Isolation: task.Isolation{Processes: int64(o.Processes), FileBytes: o.FileBytes}}
	if o.Sandbox == SandboxOff {
		i.lacks("no sandbox, since runner.sandbox is off")
	} else if err := i.trySandbox(ctx, o); err != nil && o.Sandbox == SandboxRequired {
		return i, fault.Errorf(fault.Invalid, `runner.sandbox is "required" and there can be none: %v; or set runner.sandbox to "auto"`, err)
	} else if err != nil {
		i.lacks("no sandbox: %v", err)
	}
	return i, nil
}

func (i *Isolation) lacks(format string, args ...any) {
	i.Lacks = append(i.Lacks, fmt.Sprintf(format, args...))
}

func (i *Isolation) trySandbox(ctx context.Context, o IsolationOptions) error {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return errors.New("bwrap is not on PATH, install the package bubblewrap")
	}
	sized, err := task.TryBubblewrap(ctx, bwrap, o.Program)
	if err != nil {
		return fmt.Errorf("%s fails (%w), allow unprivileged user namespaces to this service", bwrap, err)
	}
	i.Bubblewrap, i.Sized = bwrap, sized
	return nil
}

func (i *Isolation) tryCgroup(ctx context.Context, o IsolationOptions) {
	parent, lacks, err := jobsCgroup(o.Cgroup)
	if err == nil {
		err = task.TryCgroup(ctx, parent, o.Program)
	}
	if err != nil {
		i.lacks("no cgroup: %v; delegate one to this service", err)
		return
	}
	i.Cgroup = parent
	i.Lacks = append(i.Lacks, lacks...)
}

// Sentence says for an operator what is in force, and why not better.
func (i Isolation) Sentence() string {
	var s string
	switch {
	case i.Bubblewrap != "" && i.Cgroup != "":
		s = "Each job runs in a bubblewrap sandbox and a cgroup of its own"
	case i.Bubblewrap != "":
		s = "Each job runs in a bubblewrap sandbox"
	case i.Cgroup != "":
		s = "Each job runs in a cgroup of its own, and sees all that the service does"
	default:
		s = "Jobs run as plain processes, see all that the service does, and are found by a mark in their environment when they have to be killed"
	}
	if len(i.Lacks) > 0 {
		s += " (" + strings.Join(i.Lacks, "; ") + ")"
	}
	return s + "."
}
