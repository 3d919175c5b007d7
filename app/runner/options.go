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

// Options are what a runner needs besides its parts. The zero value of a
// number takes its default.
type Options struct {
	Now     func() time.Time // wall clock, for how long work directories are retained
	Log     zerolog.Logger
	Program string // path of this binary, for {molrun}

	LogBytes int64         // of a task's log; default that of package task
	Grace    time.Duration // from asking a program to end to killing it; default that of package task

	ReserveAfter time.Duration // how long a job is passed over before it reserves a slot; default 10 min
	Poll         Poll          // of tasks of executors with a capacity; default 5 ms to 1 s
	ClusterPoll  Poll          // of tasks of executors that queue by themselves; default 1 s to 15 s
	Workers      int           // how many jobs are prepared or collected at once; default 4
	MaxFiles     int           // files and directories that a result may have; default 100,000

	// Describe adds to the record in a job's result what it takes to run it again.
	// The algorithm file may be nil. Nil adds nothing.
	Describe func(app.Record, *app.Job, *algorithm.File) (app.Record, error)

	// VersionOf asks an algorithm's program of this machine for its version, "" if it can't be
	// asked. It can be nil.
	VersionOf func(context.Context, *algorithm.File) (string, error)

	// Blocked says why no job may be started now, nothing if one may. It is
	// called before jobs are started, so it must not block. Nil is always nothing.
	Blocked func() eta.Reason

	// DiskShortage describes what the disk is short of; "" if nothing. During a
	// shortage, retained work directories are removed. It must not block. Nil means
	// no shortage.
	DiskShortage func() string

	// Load receives the number of an executor's jobs with a slot, and the resources they use,
	// after each change. It must not block. It can be nil.
	Load func(executor string, jobs int, used placement.Resources)

	Quota quota.Of // what users and organizations may have in use at once

	// PilotsDir is a directory of the runner's own for the pilots that run short rows of
	// batches. Without it every job has a process of its own.
	PilotsDir string

	// LongRow is how long a row may take before those behind it in its pilot, which were
	// thought to be as short, are given back to the queue; default 20 s.
	LongRow time.Duration

	// KeepFailed is how long the work directory of a failed job is retained; 0
	// is not at all. RetainedDir is a directory of the runner's own in which it
	// notes them; without it none is retained.
	KeepFailed  time.Duration
	RetainedDir string
}

// Poll says how often a task is looked at: after a tenth of the time since it
// last changed, within these bounds. So a short job is collected at once, and a
// long one costs nothing.
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
	if o.LongRow <= 0 {
		o.LongRow = 20 * time.Second
	}
	if o.Workers <= 0 {
		o.Workers = 4
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
