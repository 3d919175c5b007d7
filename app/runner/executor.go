package runner

import (
	"fmt"
	"path/filepath"
	"time"

	"molrun/app"
	"molrun/app/algorithm/folder"
	"molrun/app/job/eta"
	"molrun/app/runner/schedule"
)

const (
	// callTimeout bounds each call to an executor.
	callTimeout = 30 * time.Second
	// remoteTimeout is callTimeout for a cluster, where a call runs several commands,
	// each with its own timeout.
	remoteTimeout = 2 * time.Minute

	// maxPreparing bounds the claimed but not yet started jobs of an executor. The rest
	// stay in the queue, where fair share applies.
	maxPreparing = 64
	// maxRemotePreparing is maxPreparing for a cluster. Tasks are batched into arrays, so
	// it must cover a full array plus as many tasks again while that array is being
	// submitted.
	maxRemotePreparing = 2000
	// topUpEvery is how long a cluster that was full gets no more jobs, unless a tenth of
	// its tasks end first. Otherwise, every few jobs would be submitted as a separate
	// array.
	topUpEvery = time.Minute
)

// Directories next to the attempts directory of a remote executor.
const (
	foldersDir       = "algorithms"
	remoteWorkersDir = "workers"
)

// executor is an app.Executor with the runner's state for it.
type executor struct {
	app.Executor
	remote  app.Remote    // nil if its tasks run on this machine
	folders *folder.Store // copies of algorithm folders visible to its tasks; nil unless remote
	timeout time.Duration
	watcher *watcher

	forecaster *forecaster
	gpus       app.GPUWatcher // nil if its GPUs never change

	// Owned by the loop.
	holds        bool            // HoldGPUs has been called
	held         []string        // the GPUs last passed to HoldGPUs
	faulty       []app.FaultyGPU // as last known
	share        *schedule.FairShare
	unseen       int       // jobs found at startup whose task has no status yet
	preparing    int       // jobs claimed but not yet started
	running      int       // jobs holding a slot
	filled       time.Time // when a cluster was last filled to its task limit
	scanned      time.Time // time of the last deep scan of the queue
	stale        bool      // wait reasons may have changed since that scan
	busy         bool      // the last round left work to do immediately
	failed       bool      // the queue could not be read
	reasons      map[app.JobID]eta.Reason
	blocked      eta.Reason // why no job can start, as of the last round
	workers      map[*worker]bool
	waitingUsers map[schedule.User]int // highest priority of each user's waiting jobs, at the last deep scan
	reserved     bool                  // a job held the reservation at that scan
}

func newExecutor(from app.Executor, jobs Jobs, o Options) *executor {
	capacity, bounded := from.Capacity()
	e := &executor{Executor: from, timeout: callTimeout, forecaster: newForecaster(from.Name(), jobs), workers: map[*worker]bool{}, share: schedule.NewFairShare(capacity, bounded, o.ReserveAfter)}
	if e.remote, _ = from.(app.Remote); e.remote != nil {
		e.timeout = remoteTimeout
		e.folders = folder.NewStore(filepath.Join(filepath.Dir(e.remote.AttemptsDir()), foldersDir))
	}
	e.gpus, _ = from.(app.GPUWatcher)
	poll := o.Poll
	if !bounded {
		poll = o.ClusterPoll
	}
	e.watcher = newWatcher(from, poll, e.timeout, o.Log)
	return e
}

// maxStarts returns how many more jobs can be claimed now.
func (e *executor) maxStarts() int {
	switch {
	case e.unseen > 0:
		return 0
	case e.remote == nil:
		return maxPreparing - e.preparing
	}
	return max(0, min(maxRemotePreparing-e.preparing, e.freeTasks()))
}

// freeTasks returns how many more tasks can be submitted to the cluster now.
func (e *executor) freeTasks() int {
	most := e.remote.MaxTasks()
	left := most - e.running
	if left < most/10 && time.Since(e.filled) < topUpEvery {
		return 0
	}
	return left
}

// whyFull returns why jobs wait if the cluster is at its task limit, or no reason if it
// is not.
func (e *executor) whyFull() eta.Reason {
	if e.remote == nil || e.freeTasks() > 0 {
		return eta.Reason{}
	}
	text := fmt.Sprintf("waiting in the queue: this service has reached its limit of %d jobs on the cluster", e.remote.MaxTasks())
	return eta.Reason{Text: text, By: eta.Slurm}
}

// whyUnseen returns why no job starts until every task found at startup has reported its
// status, or no reason if all have. Until then it is unknown which resources are in use.
func (e *executor) whyUnseen() eta.Reason {
	switch {
	case e.unseen == 0:
		return eta.Reason{}
	case e.remote == nil:
		return eta.Reason{Text: "waiting for the server to recover the jobs that were running before it started"}
	}
	return e.waiting("waiting for the cluster to report the status of earlier jobs")
}

// waiting returns the reason why a task that the executor holds does not run yet.
func (e *executor) waiting(text string) eta.Reason {
	if e.remote == nil || text == "" {
		return eta.Reason{Text: text}
	}
	return eta.Reason{Text: text, By: eta.Slurm}
}
