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
	// callTimeout bounds every call of an executor.
	callTimeout = 30 * time.Second
	// remoteTimeout is the same for a cluster, where a call takes several
	// commands, each with a timeout of its own.
	remoteTimeout = 2 * time.Minute

	// maxPreparing bounds the jobs of one executor that are claimed and not
	// started yet. The others stay in the queue, which is fair.
	maxPreparing = 64
	// maxRemotePreparing is the same for a cluster. It batches tasks into arrays,
	// so as many tasks as an array has must be there at once, and as many again
	// while that array is being submitted.
	maxRemotePreparing = 2000
	// topUpEvery is how long no jobs are sent to a cluster that was full, unless a
	// tenth of its tasks end before: a few jobs at a time would each be an array
	// of their own.
	topUpEvery = time.Minute
)

// Directories beside the attempts of a remote executor.
const (
	foldersDir      = "algorithms"
	remotePilotsDir = "pilots"
)

// executor is an app.Executor as the runner sees it.
type executor struct {
	app.Executor
	remote  app.Remote    // nil if its tasks run on this machine
	folders *folder.Store // copies of algorithms' folders that its tasks see; nil unless it is remote
	timeout time.Duration
	watcher *watcher

	forecaster *forecaster
	gpus       app.GPUWatcher // nil: its GPUs never change

	// Of the loop.
	holds     bool            // it was told which GPUs jobs have
	held      []string        // those that it was told
	faulty    []app.FaultyGPU // as last known
	share     *schedule.FairShare
	unseen    int       // jobs found at the start whose task was not seen yet
	preparing int       // jobs claimed and not started yet
	running   int       // jobs that have a slot
	filled    time.Time // when a cluster last got all the tasks that it takes
	scanned   time.Time // when the queue was last scanned in depth
	stale     bool      // reasons may have changed since then
	busy      bool      // the last round left work to do at once
	failed    bool      // the queue could not be read
	reasons   map[app.JobID]eta.Reason
	blocked   eta.Reason // why no job may be started, as last found
	pilots    map[*pilot]bool
	crowd     map[schedule.User]int // whose jobs waited at the last deep scan, with their highest priority
	reserved  bool                  // a job had the reservation then
}

func newExecutor(from app.Executor, jobs Jobs, o Options) *executor {
	capacity, bounded := from.Capacity()
	e := &executor{Executor: from, timeout: callTimeout, forecaster: newForecaster(from.Name(), jobs), pilots: map[*pilot]bool{}, share: schedule.NewFairShare(capacity, bounded, o.ReserveAfter)}
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

// maxStarts returns how many more jobs may be claimed now.
func (e *executor) maxStarts() int {
	switch {
	case e.unseen > 0:
		return 0
	case e.remote == nil:
		return maxPreparing - e.preparing
	}
	return max(0, min(maxRemotePreparing-e.preparing, e.freeTasks()))
}

// freeTasks returns how many more tasks a cluster gets now.
func (e *executor) freeTasks() int {
	most := e.remote.MaxTasks()
	left := most - e.running
	if left < most/10 && time.Since(e.filled) < topUpEvery {
		return 0
	}
	return left
}

// whyFull says why jobs wait if a cluster has all the tasks that it takes, else
// nothing.
func (e *executor) whyFull() eta.Reason {
	if e.remote == nil || e.freeTasks() > 0 {
		return eta.Reason{}
	}
	text := fmt.Sprintf("waiting for its turn: the cluster takes at most %d jobs of this service at once, and has them", e.remote.MaxTasks())
	return eta.Reason{Text: text, By: eta.Slurm}
}

// whyUnseen says why no job starts before every task found at the start was seen,
// else nothing. Until then it is unknown what is in use.
func (e *executor) whyUnseen() eta.Reason {
	switch {
	case e.unseen == 0:
		return eta.Reason{}
	case e.remote == nil:
		return eta.Reason{Text: "waiting for the server to find the jobs that ran before it started"}
	}
	return e.waiting("waiting for the cluster to report on the jobs that it had before the server started")
}

// waiting is why a task does not run yet that the executor has.
func (e *executor) waiting(text string) eta.Reason {
	if e.remote == nil || text == "" {
		return eta.Reason{Text: text}
	}
	return eta.Reason{Text: text, By: eta.Slurm}
}
