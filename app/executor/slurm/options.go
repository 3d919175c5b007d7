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

// Options say where the cluster is and how to use it. A zero field has its
// default.
type Options struct {
	// SharedDir is a directory that this machine and every node see under this
	// path. It holds the attempts' directories, copies of this program and the
	// lists of submissions, and nothing else.
	SharedDir string
	// Program is copied to SharedDir and runs tasks; default this one.
	Program string
	// Prefix begins the names of our jobs in Slurm; default molrun.
	Prefix string
	// MaxTasks is how many tasks may be in Slurm at once; default 5000. The
	// cluster's MaxJobCount and the account's MaxSubmitJobs have to be larger.
	MaxTasks int
	// HoldGrace is how long a task stays in Slurm that waits for something that
	// will not come by itself, such as a missing partition; default 10 min.
	HoldGrace time.Duration
	// Grace is what a task gives its program to end (runner.grace); default
	// that of package task. Slurm's time limit allows for it.
	Grace time.Duration
	// Poll is how often Slurm is asked for the state of its jobs; default 5 s. If
	// an answer takes long or fails, it is asked up to six times less often.
	Poll time.Duration
	// LostAfter is how long a task has to be unknown to Slurm before it counts
	// as lost, or as never submitted; default 2 min.
	LostAfter time.Duration
	// Late is how long the files of an ended task may take to become visible here;
	// default 60 s, the cache time of NFS.
	Late time.Duration
	// Timeout bounds one command of Slurm; default 30 s.
	Timeout time.Duration

	// Path is the PATH of the commands of Slurm; default that of this process.
	// SlurmConf is their SLURM_CONF, "" if they know.
	Path, SlurmConf string
	// NodePath is the PATH of programs on the nodes; default that of package
	// task.
	NodePath string

	// Sandbox is SandboxAuto, SandboxRequired or SandboxOff; default
	// SandboxAuto. The node finds out what it supports.
	Sandbox string
	// Processes is how many a job may have at once, FileBytes how large a file
	// of a job may become; 0 is no limit.
	Processes int
	FileBytes int64
	// Hide are paths besides SharedDir that no program sees, if a node has them.
	Hide []string
	// Containers says how nodes run images, ModulesInit which script defines the command
	// module there; "": one that is installed.
	Containers  container.Options
	ModulesInit string
	// SandboxOf returns what a job's algorithm may access; nil: the default.
	SandboxOf func(context.Context, app.JobID) (app.Sandbox, error)

	// Now is the wall clock, which is compared with Slurm's; default time.Now.
	Now func() time.Time
	// Ran receives each command of Slurm that was run, how long it took and how it
	// failed; it can be nil.
	Ran func(command string, took time.Duration, err error)
	// Log takes messages for the operator: fixed words, then alternating names and
	// values; nil drops them.
	Log func(message string, fields ...any)
}

// The choices of a sandbox, as in the configuration.
const (
	SandboxAuto     = "auto"     // where a node supports one
	SandboxRequired = "required" // otherwise the task does not start
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

// valid refuses values that would break a script or a list.
func (o Options) valid() error {
	switch {
	case !filepath.IsAbs(o.SharedDir) || filepath.Clean(o.SharedDir) != o.SharedDir || strings.ContainsAny(o.SharedDir, "\n%\\"):
		return fault.Errorf(fault.Invalid, "slurm.shared_dir is %q: give the absolute path of a folder that all nodes see, without %%, \\ or a line's end", o.SharedDir)
	case strings.Trim(o.Prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" || len(o.Prefix) > 64:
		return fault.Errorf(fault.Invalid, "slurm.prefix is %q: use at most 64 letters, digits, _, - and .", o.Prefix)
	case o.MaxTasks < 0 || min(o.HoldGrace, o.Grace, o.Poll, o.LostAfter, o.Late, o.Timeout) < 0:
		return errors.New("a number of the Slurm executor's options is negative")
	}
	return nil
}

const (
	// timeMargin is what Slurm lets a task live beyond its own limit and grace, so
	// that the task ends its program and reports it.
	timeMargin = time.Minute
	// memoryMargin is what the process that runs the task needs itself.
	memoryMargin = 64 << 20
)

// margin is what Slurm lets a task live beyond its own limit.
func (o Options) margin() time.Duration { return o.Grace + timeMargin }

// overdue reports whether a task cannot be alive any more, because Slurm would
// have ended it. A task without a limit may live forever.
func (o Options) overdue(t app.Task, run *task.Started) bool {
	return t.Limit > 0 && o.Now().Sub(run.StartedAt) > t.Limit+o.margin()
}
