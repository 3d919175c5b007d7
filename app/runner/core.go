package runner

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/placement"
	"molrun/app/runner/result"
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

// Dirs is what the runner needs of package blobs.
type Dirs interface {
	JobDir(id app.JobID) string
	result.Manifests
}

// core is what all attempts of a runner share.
type core struct {
	jobs     Jobs
	dirs     Dirs
	options  Options
	retained retained
	workers  chan struct{} // holds a token for each worker
	events   chan event
}

// worker waits until one of the workers is free and has it do heavy work on
// files.
func (c *core) worker(ctx context.Context, work func() error) error {
	select {
	case c.workers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.workers }()
	return work()
}

// event is what an attempt tells the loop.
type event struct {
	attempt *attempt
	kind    eventKind
	reason  string // of evWaiting
}

type eventKind int

const (
	evClaimed  eventKind = iota // the job's record says that it is ours
	evSeen                      // the executor has told about a task found at the start
	evPrepared                  // the task was started
	evWaiting                   // the task does not run yet, for a reason
	evFreed                     // the task is gone, its slot is free
	evDone                      // the attempt is finished, or was never ours
)

// attemptDir returns the directory of an attempt.
func attemptDir(dirs Dirs, id app.JobID, attempt int) string {
	return filepath.Join(dirs.JobDir(id), strconv.Itoa(attempt))
}
