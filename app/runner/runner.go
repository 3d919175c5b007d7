// Package runner decides which job runs next, prepares its directory, hands it
// to an executor, watches it and collects its result.
//
// One goroutine, the loop, owns the slots and decides (loop.go). Every claimed
// job has a goroutine of its own from the claim to the end (attempt.go), and
// every executor one that polls its tasks (watcher.go). What is known of a
// claimed job is in its directory and its record, so a runner may die at any
// moment and the next one continues from there (recover.go).
//
// Short rows of one batch share a process (pilot.go): the attempt that gets a slot claims
// others, and all of them are handed to one pilot, which holds the slot until its last row
// has ended. While no other user waits for the slot, it claims more for a minute. Each row
// has its own attempt, goroutine, directory and end, so nothing else knows of pilots:
// cancelling, retrying, recovering go by the row. A pilot that an earlier runner has
// started gets no more rows; those that it never began go to the next. On a cluster, each
// process of a pilot is a job there.
//
// A job's directory:
//
//	<attempt>/      one for each attempt, from 1 on; package task says what is in it;
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

	// Of the loop.
	active   map[app.JobID]*attempt // the jobs that have a goroutine
	orphaned map[app.JobID]bool     // claimed for an executor that is not configured
}

// New joins the parts of a runner.
func New(jobs Jobs, dirs Dirs, executors []app.Executor, o Options) *Runner {
	o = o.withDefaults()
	r := &Runner{
		core: core{
			jobs:        jobs,
			dirs:        dirs,
			options:     o,
			retained:    retained{dir: o.RetainedDir, keep: o.KeepFailed, now: o.Now, jobs: jobs, dirs: dirs},
			workers:     make(chan struct{}, o.Workers),
			events:      make(chan event, 256),
			pilotCounts: newPilotCounts(),
			attempts:    &sync.WaitGroup{},
			writers:     &writers{},
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

// Run runs jobs until ctx ends, and returns when none of the runner's
// goroutines remains. Tasks continue to run; the next runner finds them.
func (r *Runner) Run(ctx context.Context) error {
	if r.options.PilotsDir != "" {
		if disk, err := durable.OpenDisk(filepath.Dir(r.dirs.JobDir("any"))); err == nil {
			defer disk.Close()
			r.disk = disk
			r.boot, _ = task.BootID() // "": results of a cluster are synced one by one
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
				cleanUpHourly(ctx, log, "unused directories of attempts", func(ctx context.Context) error {
					return errors.Join(cleanUpRemote(ctx, r.jobs, e.remote.AttemptsDir()), cleanUpFolders(ctx, r.jobs, e.folders))
				})
			})
		}
	}
	if r.options.PilotsDir != "" {
		others.Go(func() { cleanUpHourly(ctx, r.options.Log, "directories of pilots", r.cleanUpAllPilots) })
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
