package runner

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/job/quota"
)

// Options configures a runner. A zero number means its default.
type Options struct {
	Now     func() time.Time // wall clock, for how long work directories are retained
	Log     zerolog.Logger
	Program string // path of this binary, for {molrun}

	LogBytes int64         // limit of a task's log; default that of package task
	Grace    time.Duration // time between asking a program to end and killing it; default that of package task

	ReserveAfter time.Duration // how long a job can be passed over before it reserves a slot; default 10 min
	Poll         Poll          // for tasks of executors with a capacity; default 5 ms to 1 s
	ClusterPoll  Poll          // for tasks of executors that have their own queue; default 1 s to 15 s
	Concurrency  int           // how many jobs are prepared or collected concurrently; default 4
	MaxFiles     int           // maximum number of files and directories in a result; default 100,000

	// Describe adds to the record in a job's result what is needed to run the job again.
	// The algorithm file can be nil. A nil Describe adds nothing.
	Describe func(app.Record, *app.Job, *algorithm.File) (app.Record, error)

	// VersionOf queries the version of an algorithm's program on this machine, "" if the
	// program can't report one. It can be nil.
	VersionOf func(context.Context, *algorithm.File) (string, error)

	// Blocked returns why no job can be started now, or no reason if jobs can start. It
	// is called before jobs are started, so it must not block. Nil means never blocked.
	Blocked func() eta.Reason

	// DiskShortage describes what the disk is short of, or returns "" if nothing. During
	// a shortage, retained work directories are removed. It must not block. Nil means no
	// shortage.
	DiskShortage func() string

	// Load receives the number of an executor's jobs that hold a slot, and the resources
	// they use, after each change. It must not block. It can be nil.
	Load func(executor string, jobs int, used placement.Resources)

	Quota quota.Of // limits on what users and organizations have in use at once

	// WorkersDir is a private directory of the runner for the workers that run short jobs
	// of batches. Without it every job has its own process.
	WorkersDir string

	// LongJob is how long a job in a worker can run before the jobs behind it, which were
	// expected to be as short, are returned to the queue; default 20 s.
	LongJob time.Duration

	// KeepFailed is how long the work directory of a failed job is retained; 0 means not
	// at all. RetainedDir is a private directory of the runner in which it records them;
	// without it none is retained.
	KeepFailed  time.Duration
	RetainedDir string
}

// Poll bounds how often a task is polled: after a tenth of the time since it last
// changed, within these bounds. So a short job is collected at once, and a long one costs
// almost nothing.
type Poll struct{ Min, Max time.Duration }

func (p Poll) orDefault(d Poll) Poll {
	if p.Min <= 0 {
		p.Min = d.Min
	}
	if p.Max < p.Min {
		p.Max = max(d.Max, p.Min)
	}
	return p
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ReserveAfter <= 0 {
		o.ReserveAfter = 10 * time.Minute
	}
	if o.LongJob <= 0 {
		o.LongJob = 20 * time.Second
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 100_000
	}
	if o.Blocked == nil {
		o.Blocked = func() eta.Reason { return eta.Reason{} }
	}
	if o.DiskShortage == nil {
		o.DiskShortage = func() string { return "" }
	}
	if o.Load == nil {
		o.Load = func(string, int, placement.Resources) {}
	}
	if o.RetainedDir == "" {
		o.KeepFailed = 0
	}
	o.Poll = o.Poll.orDefault(Poll{5 * time.Millisecond, time.Second})
	o.ClusterPoll = o.ClusterPoll.orDefault(Poll{time.Second, 15 * time.Second})
	return o
}
