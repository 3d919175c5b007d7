package app

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app/algorithm"
	"molrun/app/algorithm/validator"
	"molrun/app/fault"
	"molrun/app/routing"
	"molrun/app/sortid"
)

// core is what all use cases share: the parts that they work on, and the state
// that lives in memory only.
type core struct {
	store     Store
	blobs     Blobs
	catalogue *algorithm.Catalogue
	router    *routing.Router
	options   Options
	ids       *sortid.Source

	wake        chan struct{} // nudges the runner; holds one
	changes     changes
	live        liveStates
	onProgress  func(*Job, Progress) // nil: nobody wants to know
	draining    sync.Mutex           // held while drain changes
	drain       atomic.Pointer[Drain]
	definitions definitions
	expanding   atomic.Int64 // bytes of the batches that are being expanded
}

func (c *core) now() time.Time { return c.options.Now() }

func (c *core) newJobID() JobID { return JobID(c.ids.Next(c.now())) }

// quota returns the bounds of an organization.
func (c *core) quota(organization string) Quota {
	if c.options.Quota == nil {
		return Quota{}
	}
	return c.options.Quota(organization)
}

func (c *core) wakeRunner() {
	select {
	case c.wake <- struct{}{}:
	default: // a nudge is pending already
	}
}

// definitions caches the algorithm files that jobs were validated against.
type definitions struct {
	mu     sync.Mutex
	parsed map[string]*algorithm.File // by digest
}

const maxDefinitions = 256 // parsed files kept in memory

// algorithmOf returns the algorithm file that a job was validated against,
// which may be older than the catalogue's.
func (c *core) algorithmOf(ctx context.Context, j *Job) (*algorithm.File, error) {
	digest := j.Private.Definition
	if a, ok := c.catalogue.Find(j.Type, j.Version); ok && a.Digest == digest {
		return a, nil
	}
	c.definitions.mu.Lock()
	defer c.definitions.mu.Unlock()
	if a := c.definitions.parsed[digest]; a != nil {
		return a, nil
	}
	var text []byte
	err := c.store.View(ctx, func(tx Tx) (err error) {
		text, err = tx.Definition(digest)
		return err
	})
	if err != nil {
		return nil, err
	}
	a, mistakes := algorithm.Parse(j.Type+"-"+j.Version+".toml", text)
	if len(mistakes) > 0 {
		return nil, fault.Errorf(fault.Internal, "the stored definition of %s %s can't be read: line %d: %s", j.Type, j.Version, mistakes[0].Line, mistakes[0].Msg)
	}
	if c.definitions.parsed == nil || len(c.definitions.parsed) >= maxDefinitions {
		c.definitions.parsed = map[string]*algorithm.File{}
	}
	c.definitions.parsed[digest] = a
	return a, nil
}

// referencePath returns the path of the file that a reference names.
func (c *core) referencePath(ref Reference) (string, error) {
	switch {
	case ref.Upload != "":
		return c.blobs.UploadPath(ref.Upload, ref.Generation), nil
	case ref.Job != "" && filepath.IsLocal(ref.Path):
		return filepath.Join(c.blobs.JobDir(ref.Job), ref.Path), nil
	}
	return "", fault.Errorf(fault.Internal, "the file of setting %q can't be read", ref.Setting)
}

// Options are what a service needs besides its parts.
type Options struct {
	Now     func() time.Time // wall clock; only shown and stored
	Routing routing.Table    // where jobs run
	Program string           // path of this binary, for {molrun}

	// Validators runs the programs that check settings; nil is a pool with all
	// defaults.
	Validators *validator.Pool

	// SettleStep is how many dependants one transaction tells; 0 is 100.
	SettleStep int

	// Quota tells what an organization may use; nil is no bound.
	Quota func(organization string) Quota
}

// Quota bounds what an organization uses; 0 does not.
type Quota struct {
	Bytes  int64 // of uploads and results
	Queued int   // jobs that wait
}
