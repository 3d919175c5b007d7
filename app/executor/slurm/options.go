package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/task/container"
	"molrun/app/task/process"
)

// Options describes the cluster and how to use it. A zero field means its default.
type Options struct {
	// SharedDir is a directory that this machine and every node see under this path. It
	// must be used for nothing else: it contains the attempt and worker directories,
	// copies of this program and of algorithm folders, and the submission lists.
	SharedDir string
	// Program is copied to SharedDir and runs tasks; default this executable.
	Program string
	// Prefix begins the names of our jobs in Slurm; default molrun.
	Prefix string
	// MaxTasks is the maximum number of tasks in Slurm at once; default 5000. The
	// cluster's MaxJobCount and the account's MaxSubmitJobs must be larger.
	MaxTasks int
	// HoldGrace is how long a task stays in Slurm while it waits for a condition that
	// will not resolve on its own, such as a missing partition; default 10 min.
	HoldGrace time.Duration
	// Grace is the time a task gives its program to end (runner.grace); default that of
	// package task. Slurm's time limit allows for it.
	Grace time.Duration
	// Poll is how often Slurm is queried for the state of its jobs; default 5 s. If a
	// query is slow or fails, polling slows down by a factor of up to six.
	Poll time.Duration
	// LostAfter is how long a task must be unknown to Slurm before it counts as lost, or
	// as never submitted; default 2 min.
	LostAfter time.Duration
	// Late is how long the files of an ended task can take to become visible here;
	// default 60 s, the cache time of NFS.
	Late time.Duration
	// Timeout bounds one Slurm command; default 30 s.
	Timeout time.Duration

	// Path is the PATH of Slurm's commands; default that of this process. SlurmConf is
	// their SLURM_CONF; "" means their built-in default.
	Path, SlurmConf string
	// NodePath is the PATH of programs on the nodes; default that of package
	// task.
	NodePath string

	// Sandbox is SandboxAuto, SandboxRequired or SandboxOff; default SandboxAuto. The
	// node detects what it supports.
	Sandbox string
	// Processes is the maximum number of processes of a job, FileBytes the maximum size
	// of a job's file; 0 means no limit.
	Processes int
	FileBytes int64
	// Hide lists paths, in addition to SharedDir, that are hidden from programs if a node
	// has them.
	Hide []string
	// Containers configures how nodes run images, ModulesInit is the script that defines
	// the command module there; "" means one that is installed.
	Containers  container.Options
	ModulesInit string
	// SandboxOf returns what a job's algorithm can access; nil means the default.
	SandboxOf func(context.Context, app.JobID) (app.Sandbox, error)

	// Now returns the wall-clock time, which is compared with Slurm's; default time.Now.
	Now func() time.Time
	// Ran is called after each Slurm command with its duration and error; it can be nil.
	Ran func(command string, took time.Duration, err error)
	// Log receives messages for the operator: a fixed text, then alternating names and
	// values; nil drops them.
	Log func(message string, fields ...any)
}

// The sandbox settings, as in the configuration.
const (
	SandboxAuto     = "auto"     // use a sandbox where the node supports it
	SandboxRequired = "required" // start no task without a sandbox
	SandboxOff      = "off"
)

const defaultMaxTasks = 5000

func (o Options) withDefaults() Options {
	setDefault(&o.Program, process.Self)
	setDefault(&o.Prefix, "molrun")
	setDefault(&o.MaxTasks, defaultMaxTasks)
	setDefault(&o.HoldGrace, 10*time.Minute)
	setDefault(&o.Grace, task.DefaultGraceSeconds*time.Second)
	setDefault(&o.Poll, 5*time.Second)
	setDefault(&o.LostAfter, 2*time.Minute)
	setDefault(&o.Late, time.Minute)
	setDefault(&o.Timeout, 30*time.Second)
	setDefault(&o.Path, os.Getenv("PATH"))
	setDefault(&o.Sandbox, SandboxAuto)
	if o.SandboxOf == nil {
		o.SandboxOf = func(context.Context, app.JobID) (app.Sandbox, error) { return app.Sandbox{}, nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return o
}

func setDefault[T string | int | time.Duration](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// valid rejects values that would break a script or a list.
func (o Options) valid() error {
	switch {
	case !filepath.IsAbs(o.SharedDir) || filepath.Clean(o.SharedDir) != o.SharedDir || strings.ContainsAny(o.SharedDir, "\n%\\"):
		return fault.Errorf(fault.Invalid, "slurm.shared_dir is %q: must be the absolute path of a folder visible to all nodes, without %%, \\ or line breaks", o.SharedDir)
	case strings.Trim(o.Prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" || len(o.Prefix) > 64:
		return fault.Errorf(fault.Invalid, "slurm.prefix is %q: use at most 64 letters, digits, _, - and .", o.Prefix)
	case o.MaxTasks < 0 || min(o.HoldGrace, o.Grace, o.Poll, o.LostAfter, o.Late, o.Timeout) < 0:
		return errors.New("a numeric option of the Slurm executor is negative")
	}
	return nil
}

const (
	// timeMargin is how long Slurm lets a task live past its own limit and grace, so that
	// the task can end its program and report it.
	timeMargin = time.Minute
	// memoryMargin is the memory needed by the process that runs the task.
	memoryMargin = 64 << 20
)

// margin is how long Slurm lets a task live past its own limit.
func (o Options) margin() time.Duration { return o.Grace + timeMargin }

// overdue reports whether a task can no longer be alive, because Slurm would have ended
// it. A task without a limit can live forever.
func (o Options) overdue(t app.Task, run *task.Started) bool {
	return t.Limit > 0 && o.Now().Sub(run.StartedAt) > t.Limit+o.margin()
}
