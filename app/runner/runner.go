// Package runner decides which job runs next, lays out its directory, hands
// it to an executor, watches it and collects what it leaves.
//
// One goroutine, the loop, owns the slots and decides. Every claimed job has a
// goroutine of its own that takes it from the claim to the end (attempt.go),
// and every executor one that asks how its tasks stand (watch.go). What is
// known of a claimed job lies in its directory and its record, so a runner may
// end at any moment and the next one goes on from there (recover.go).
//
// A job's directory:
//
//	<attempt>/      one for each attempt, from 1 on; package task says what is in it;
//	                a link while it lies where other machines see it (remote.go)
//	<attempt>/work/ the program's current directory: in/ out/ tmp/ settings.json
//	result/         what a completed job's program left in out/
//	job.json        the record of a completed job
//	manifest.json   the list of a completed job's files; written last
package runner

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/placement"
)

// Jobs is what the runner needs of app.Runs.
type Jobs interface {
	Claims(ctx context.Context) ([]app.Claimed, error)
	Active(ctx context.Context) ([]*app.Job, error)
	Queue(ctx context.Context, executor string, visit func(app.Waiting) app.Visit) error
	Claim(ctx context.Context, id app.JobID, gpus []string) (*app.Job, error)
	SetHandle(ctx context.Context, id app.JobID, attempt int, h app.Handle) error
	Started(ctx context.Context, id app.JobID, attempt int, at time.Time) error
	Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error
	FinalRecord(j *app.Job, e app.Ending) (app.Record, error)
	Reject(ctx context.Context, id app.JobID, message string) error
	SetProgress(id app.JobID, p *app.Progress)
	SetWaitReasons(reasons map[app.JobID]string)
	AlgorithmOf(ctx context.Context, j *app.Job) (*algorithm.File, error)
	PlacementOf(ctx context.Context, j *app.Job) (placement.Placement, error)
	InputPath(ref app.Reference) (string, error)
	Wake() <-chan struct{}
}

var _ Jobs = (*app.Runs)(nil)

// Dirs is what the runner needs of package blobs. A manifest is written once,
// when all that it lists is durable.
type Dirs interface {
	JobDir(id app.JobID) string
	Manifest(id app.JobID) (*app.Manifest, error)
	WriteManifest(id app.JobID, m *app.Manifest) error
}

// Options are what a runner needs besides its parts. The zero value of a
// number takes its default.
type Options struct {
	Now     func() time.Time // wall clock: when a failed job's work directory goes
	Log     zerolog.Logger
	Program string // path of this binary, for {molrun}

	LogBytes int64         // of a task's log; default that of package task
	Grace    time.Duration // from asking a program to end to killing it; default that of package task

	ReserveAfter time.Duration // how long a job is passed over before room is kept for it; default 10 min
	Poll         Poll          // how often tasks of executors with a capacity are looked at; default 5 ms to 1 s
	ClusterPoll  Poll          // the same for executors that queue by themselves; default 1 s to 15 s
	Workers      int           // how many jobs are laid out or collected at once; default 4
	MaxFiles     int           // how many files and folders a result may have; default 100,000

	// Room tells in words why no job may be started now, "" where one may; nil is
	// always. It is asked before jobs are started, so it answers at once.
	Room func() string

	// KeepFailed is how long the work directory of a failed job stays; 0 is
	// not at all. KeptDir is a directory of the runner's own in which it notes
	// those directories; without it none stays.
	KeepFailed time.Duration
	KeptDir    string
}

// Poll says how often a task is looked at: a tenth of the time since it last
// changed, within these bounds. So a short job is collected at once, and a
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
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 100_000
	}
	if o.Room == nil {
		o.Room = func() string { return "" }
	}
	if o.KeptDir == "" {
		o.KeepFailed = 0
	}
	o.Poll = o.Poll.orDefault(Poll{5 * time.Millisecond, time.Second})
	o.ClusterPoll = o.ClusterPoll.orDefault(Poll{time.Second, 15 * time.Second})
	return o
}

// Runner runs jobs on executors.
type Runner struct {
	jobs    Jobs
	dirs    Dirs
	places  []*place // one for each executor
	options Options
	kept    kept
	workers chan struct{} // a token for each job that is laid out or collected

	// Of the loop.
	held   map[app.JobID]*attempt // every job in hand
	events chan event
	astray map[app.JobID]bool // claimed for an executor that is not here

	attempts sync.WaitGroup
}

// New joins the parts of a runner.
func New(jobs Jobs, dirs Dirs, executors []app.Executor, o Options) *Runner {
	o = o.withDefaults()
	r := &Runner{
		jobs:    jobs,
		dirs:    dirs,
		options: o,
		kept:    kept{dir: o.KeptDir, keep: o.KeepFailed, now: o.Now, jobs: jobs, dirs: dirs, log: o.Log},
		workers: make(chan struct{}, o.Workers),
		held:    map[app.JobID]*attempt{},
		events:  make(chan event, 256),
		astray:  map[app.JobID]bool{},
	}
	for _, e := range executors {
		r.places = append(r.places, newPlace(e, o))
	}
	return r
}

// Run runs jobs until ctx ends, and returns when nothing of the runner is at
// work any more. Tasks run on; the next runner finds them.
func (r *Runner) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	for _, p := range r.places {
		others.Go(func() { p.watcher.run(ctx) })
	}
	for _, p := range r.places {
		if p.remote != nil {
			others.Go(func() { r.sweepAway(ctx, p) })
		}
	}
	if r.options.KeptDir != "" {
		others.Go(func() { r.kept.run(ctx) })
	}
	r.loop(ctx)
	cancel()
	r.attempts.Wait()
	others.Wait()
	return nil
}

// place finds the executor of that name, nil where it is not here.
func (r *Runner) place(name string) *place {
	for _, p := range r.places {
		if p.name == name {
			return p
		}
	}
	return nil
}

// attemptDir gives the directory of an attempt.
func attemptDir(dirs Dirs, id app.JobID, attempt int) string {
	return filepath.Join(dirs.JobDir(id), strconv.Itoa(attempt))
}

// worker waits for its turn to do heavy work on files and runs it.
func (r *Runner) worker(ctx context.Context, work func() error) error {
	select {
	case r.workers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.workers }()
	return work()
}
