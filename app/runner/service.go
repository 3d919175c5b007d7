package runner

import (
	"context"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/runner/result"
)

// Jobs is the part of app.Runs that the runner uses.
type Jobs interface {
	Claims(ctx context.Context) ([]app.Claimed, error)
	Propagate(ctx context.Context) error
	Active(ctx context.Context) ([]*app.Job, error)
	Queue(ctx context.Context, executor string, visit func(app.Waiting) app.Visit) error
	Claim(ctx context.Context, id app.JobID, leased placement.Devices, p app.ClaimLimit) (*app.Job, []*app.Job, error)
	ClaimRows(ctx context.Context, first *app.Job, p app.ClaimLimit) ([]*app.Job, error)
	Return(ctx context.Context, id app.JobID, attempt int) error
	ResolveInputs(ctx context.Context, j *app.Job) (*app.Failure, error)
	SetHandle(ctx context.Context, id app.JobID, attempt int, h app.Handle) error
	Started(ctx context.Context, id app.JobID, attempt int, at time.Time, on app.ClusterJob) error
	Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error
	FinalRecord(j *app.Job, e app.Ending) (app.Record, error)
	MoreMemory(alg *algorithm.File, j *app.Job) (bytes int64, why string)
	Reject(ctx context.Context, id app.JobID, message string) error
	SetProgress(j *app.Job, p app.Progress)
	SetWaitReasons(reasons map[app.JobID]eta.Reason)
	Lines(ctx context.Context, executor string, most int) ([]app.QueueLine, error)
	History(ctx context.Context, class string) (*eta.History, error)
	RemainingTime(id app.JobID) (seconds float64, basis string, runs bool)
	SetQueueForecast(executor string, o app.QueueForecast)
	AlgorithmOf(ctx context.Context, j *app.Job) (*algorithm.File, error)
	PlacementOf(ctx context.Context, j *app.Job) (placement.Placement, error)
	StorageShares(ctx context.Context, jobs []app.Writing) (bytes []int64, err error)
	InputPath(ref app.Reference) (string, error)
	Wake() <-chan struct{}
}

var _ Jobs = (*app.Runs)(nil)

// Dirs is the part of package blobs that the runner uses.
type Dirs interface {
	JobDir(id app.JobID) string
	result.Manifests
}
