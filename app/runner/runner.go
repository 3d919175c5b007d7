// Package runner decides which job runs next, prepares its directory, passes it to an
// executor, watches it and collects its result.
//
// One goroutine, the loop, owns the slots and makes the scheduling decisions (loop.go).
// Every claimed job has its own goroutine from claim to end (attempt.go), and every
// executor has one that polls its tasks (watcher.go). All state of a claimed job is in
// its directory and its record, so a runner can die at any moment and the next one
// continues from there (recover.go).
//
// Short jobs of one batch share a worker process (worker.go): the attempt that
// gets a slot claims further jobs, and all of them are handed to one worker, which holds
// the slot until its last job has ended. While no other user waits for the slot, it
// claims more for a minute. Each job has its own attempt, goroutine, directory and end,
// so no other code depends on workers: canceling, retrying and recovering work on single
// jobs. A worker started by an earlier runner gets no more jobs; those that it never began
// go to the next worker. On a cluster, each process of a worker is a cluster job.
//
// A job's directory:
//
//	<attempt>/      one for each attempt, from 1 on; for its content see package task;
//	                a link while the task runs on other machines (package result)
//	<attempt>/work/ the program's current directory: in/ out/ tmp/ settings.json
//	result/         what a completed job's program left in out/
//	job.json        the record of a completed job
//	manifest.json   the list of a completed job's files; written last
package runner

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"molrun/app"
	"molrun/app/base/durable"
	"molrun/app/runner/schedule"
	"molrun/app/task"
)

// Runner runs jobs on executors.
type Runner struct {
	core
	executors []*executor

	// Owned by the loop.
	active   map[app.JobID]*attempt // jobs that have a goroutine
	orphaned map[app.JobID]bool     // claimed for an executor that is not configured
}

// New returns a runner for the given service, directories and executors.
func New(jobs Jobs, dirs Dirs, executors []app.Executor, o Options) *Runner {
	o = o.withDefaults()
	r := &Runner{
		core: core{
			jobs:         jobs,
			dirs:         dirs,
			options:      o,
			retained:     retained{dir: o.RetainedDir, keep: o.KeepFailed, now: o.Now, jobs: jobs, dirs: dirs},
			slots:        make(chan struct{}, o.Concurrency),
			events:       make(chan event, 256),
			workerCounts: newWorkerCounts(),
			attempts:     &sync.WaitGroup{},
			writers:      &writers{},
		},
		active:   map[app.JobID]*attempt{},
		orphaned: map[app.JobID]bool{},
	}
	limits := schedule.NewLimits(o.Quota)
	for _, e := range executors {
		x := newExecutor(e, jobs, o)
		x.share.ShareLimits(limits)
		r.executors = append(r.executors, x)
	}
	return r
}

// Run runs jobs until ctx ends, and returns when all of the runner's goroutines have
// exited. Tasks continue to run; the next runner finds them.
func (r *Runner) Run(ctx context.Context) error {
	if r.options.WorkersDir != "" {
		if disk, err := durable.OpenDisk(filepath.Dir(r.dirs.JobDir("any"))); err == nil {
			defer disk.Close()
			r.disk = disk
			r.boot, _ = task.BootID() // if "", results from a cluster are synced one by one
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	for _, e := range r.executors {
		others.Go(func() { e.watcher.run(ctx) })
		others.Go(func() { e.forecaster.publish(ctx, r.options.Log) })
		if e.gpus != nil {
			others.Go(func() { r.followGPUs(ctx, e) })
		}
		if e.remote != nil {
			log := r.options.Log.With().Str("executor", e.Name()).Logger()
			others.Go(func() {
				cleanUpHourly(ctx, log, "unused attempt directories", func(ctx context.Context) error {
					return errors.Join(cleanUpRemote(ctx, r.jobs, e.remote.AttemptsDir()), cleanUpFolders(ctx, r.jobs, e.folders))
				})
			})
		}
	}
	if r.options.WorkersDir != "" {
		others.Go(func() { cleanUpHourly(ctx, r.options.Log, "worker directories", r.cleanUpAllWorkers) })
	}
	if r.options.Quota != nil {
		others.Go(func() { r.shareStorage(ctx) })
	}
	if r.options.RetainedDir != "" {
		others.Go(func() { cleanUpHourly(ctx, r.options.Log, "work directories of failed jobs", r.retained.cleanUp) })
		others.Go(func() { r.retained.freeDiskSpace(ctx, r.options.Log, r.options.DiskShortage) })
	}
	r.loop(ctx)
	cancel()
	r.attempts.Wait()
	others.Wait()
	return nil
}
