package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/task"
)

// Options say where the cluster is and how it is used. The zero value of a
// field takes its default.
type Options struct {
	// SharedDir is a folder that this machine and every node see under this
	// path. The attempts' directories, a copy of this program and the lists of
	// what was submitted lie in it, and nothing of anybody else.
	SharedDir string
	// Program is this program's path. It is copied to SharedDir.
	Program string
	// Prefix begins the names of our jobs in Slurm; default molrun.
	Prefix string
	// MaxTasks is how many tasks may be in Slurm at once; default 5000. The
	// cluster's MaxJobCount and the account's MaxSubmitJobs have to be larger.
	MaxTasks int
	// HoldGrace is how long a task stays in Slurm that waits for what will not
	// come by itself, such as a partition that does not exist; default 10 min.
	HoldGrace time.Duration
	// Grace is what a task gives its program to end (runner.grace); default
	// that of package task. Slurm's time limit leaves room for it.
	Grace time.Duration
	// Poll is how often Slurm is asked how its jobs stand; default 5 s. Where
	// an answer takes long or fails it is asked up to six times less often.
	Poll time.Duration
	// LostAfter is how long a task has to be unknown to Slurm before it counts
	// as lost, or as never submitted; default 2 min.
	LostAfter time.Duration
	// Late is how long the files of a task that Slurm says has ended may take to
	// be seen here; default 60 s, as long as NFS keeps what it once read.
	Late time.Duration
	// Timeout bounds one command of Slurm; default 30 s.
	Timeout time.Duration

	// Path is where the commands of Slurm are looked for (PATH); default that
	// of this process. SlurmConf is their SLURM_CONF, "" where they know.
	Path, SlurmConf string
	// NodePath is the PATH of programs on the nodes; default that of package
	// task.
	NodePath string

	// Sandbox is SandboxAuto, SandboxRequired or SandboxOff; default
	// SandboxAuto. It is a node that finds out what it can give.
	Sandbox string
	// Processes is how many a job may have at once, FileBytes how large a file
	// of a job may become; 0 is no limit.
	Processes int
	FileBytes int64
	// SandboxOf gives what a job's algorithm may reach; nil: nothing more than
	// any.
	SandboxOf func(context.Context, app.JobID) (app.Sandbox, error)

	// Now is the wall clock, to be compared with Slurm's; default time.Now.
	Now func() time.Time
	// Log takes what an operator should know: fixed words, then names and
	// values in turn; nil drops it.
	Log func(message string, fields ...any)
}

// The wishes for a sandbox, as in the configuration.
const (
	SandboxAuto     = "auto"     // where a node can give one
	SandboxRequired = "required" // else the task does not start
	SandboxOff      = "off"
)

const defaultMaxTasks = 5000

func (o Options) withDefaults() Options {
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

// valid refuses what would break a script or a list.
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
