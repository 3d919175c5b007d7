package app

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app/algorithm"
	"molrun/app/algorithm/routing"
	"molrun/app/algorithm/validator"
	"molrun/app/base/events"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/job/notice"
	"molrun/app/job/quota"
)

// core holds the dependencies and in-memory state shared by all use cases.
type core struct {
	store     Store
	blobs     Blobs
	catalogue *algorithm.Catalogue
	router    *routing.Router
	options   Options
	ids       *sortid.Source

	wake        chan struct{} // wakes the runner; capacity 1
	wakeChanges chan struct{} // the same for ChangeRows
	changes     events.Changes[JobID]
	live        liveStates
	onProgress  func(*Job, Progress) // optional
	draining    sync.Mutex           // held while drain changes
	drain       atomic.Pointer[Drain]
	expanding   atomic.Int64 // bytes of the batches being expanded
}

func (c *core) now() time.Time { return c.options.Now() }

func (c *core) newJobID() JobID { return JobID(c.ids.Next(c.now())) }

func (c *core) wakeRunner() { wake(c.wake) }

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// algorithmOf returns the algorithm file that a job was validated against, which may be
// older than the catalogue's.
func (c *core) algorithmOf(ctx context.Context, j *Job) (*algorithm.File, error) {
	return c.catalogue.Validated(j.Type, j.Version, j.Private.Definition, func() (text []byte, err error) {
		err = c.store.View(ctx, func(tx Tx) (err error) {
			text, err = tx.Definition(j.Private.Definition)
			return err
		})
		return text, err
	})
}

// algorithmIn is algorithmOf within a transaction.
func (c *core) algorithmIn(tx Tx, j *Job) (*algorithm.File, error) {
	return c.catalogue.Validated(j.Type, j.Version, j.Private.Definition, func() ([]byte, error) { return tx.Definition(j.Private.Definition) })
}

// referencePath returns the path of the file that a reference points to.
func (c *core) referencePath(ref Reference) (string, error) {
	switch {
	case ref.Upload != "":
		return c.blobs.UploadPath(ref.Upload, ref.Generation), nil
	case ref.Job != "" && filepath.IsLocal(ref.Path):
		return filepath.Join(c.blobs.JobDir(ref.Job), ref.Path), nil
	}
	return "", fault.Errorf(fault.Internal, "the file of setting %q can't be read", ref.Setting)
}

// Options configures a service.
type Options struct {
	Now     func() time.Time // wall clock; used only for times shown and stored
	Routing routing.Table    // where jobs run
	Program string           // path of this binary, for {molrun}
	Notices notice.Policy    // recipients that submissions can name

	// Validators runs the programs that check settings; nil means a pool with defaults.
	Validators *validator.Pool

	// PropagationStep is the maximum number of dependents handled in one transaction. 0
	// means 100.
	PropagationStep int

	// BatchStep is the maximum number of rows of a batch that one transaction stops or
	// retries. 0 means 50.
	BatchStep int

	// MaxExpandingBytes limits the total memory for batches being expanded, in bytes; 0 means 192
	// MiB.
	MaxExpandingBytes int64

	Quota quota.Of // limits of users and organizations

	Makers map[string]MakerSite // by type
}
