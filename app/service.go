package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app/algorithm"
	"molrun/app/fault"
	"molrun/app/routing"
)

// Service is every use case, one method each. It holds the rules and knows no
// technology: records go through Store, files through Blobs.
type Service struct {
	store     Store
	blobs     Blobs
	catalogue *algorithm.Catalogue
	router    *routing.Router
	options   Options
	ids       *idSource
	cursors   cursorKey

	wake        chan struct{} // nudges the runner; holds one
	changes     changes
	sightings   sightings
	definitions definitions
	keys        knownKeys
	uses        keyUses
	generation  atomic.Int64 // highest given to a PUT
	arrivals    arrivals
	retention   retention
}

// Options are what a service needs besides its parts.
type Options struct {
	Now       func() time.Time // wall clock; only shown and stored
	CursorKey []byte           // 32 bytes
	UploadTTL time.Duration    // of upload links and an upload's download link
	Routing   routing.Table    // where jobs run
	Program   string           // path of this binary, for {molrun}

	// Confine is for the programs that check settings; nil lets them do what this
	// process may.
	Confine algorithm.Confine

	// Policy tells what an organization may use and keep; nil bounds and deletes
	// nothing.
	Policy func(organization string) Policy
}

// NewService joins the parts.
func NewService(store Store, blobs Blobs, catalogue *algorithm.Catalogue, o Options) (*Service, error) {
	switch {
	case len(o.CursorKey) < 32:
		return nil, errors.New("the key that signs cursors must have 32 bytes")
	case o.Now == nil:
		return nil, errors.New("a service needs a clock")
	}
	return &Service{
		store:     store,
		blobs:     blobs,
		catalogue: catalogue,
		router:    routing.New(o.Routing),
		options:   o,
		ids:       newIDSource(store.Floor()),
		cursors:   cursorKey(o.CursorKey),
		wake:      make(chan struct{}, 1),
	}, nil
}

// Wake gives the channel that receives when there may be something to start
// or stop.
func (s *Service) Wake() <-chan struct{} { return s.wake }

func (s *Service) wakeRunner() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (s *Service) now() time.Time { return s.options.Now() }

func (s *Service) newJobID() JobID { return JobID(s.ids.next(s.now())) }

// changes lets callers wait for the next change of a job's state.
type changes struct {
	mu      sync.Mutex
	waiting map[JobID]*waiters
}

type waiters struct {
	changed chan struct{} // closed by tell
	count   int
}

// next gives a channel that is closed at the job's next change, and what to
// call when no longer interested.
func (c *changes) next(id JobID) (changed <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[JobID]*waiters{}
	}
	w := c.waiting[id]
	if w == nil {
		w = &waiters{changed: make(chan struct{})}
		c.waiting[id] = w
	}
	w.count++
	return w.changed, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.count--; w.count == 0 && c.waiting[id] == w {
			delete(c.waiting, id)
		}
	}
}

// tell wakes whoever waits for these jobs.
func (c *changes) tell(ids ...JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if w := c.waiting[id]; w != nil {
			close(w.changed)
			delete(c.waiting, id)
		}
	}
}

// definitions caches algorithm files that jobs were validated against.
type definitions struct {
	mu     sync.Mutex
	parsed map[string]*algorithm.File
}

const maxDefinitions = 256 // parsed ones in memory

// AlgorithmOf gives the definition that a job was validated against, which
// may be older than the catalogue's.
func (s *Service) AlgorithmOf(ctx context.Context, j *Job) (*algorithm.File, error) {
	digest := j.Private.Definition
	if a, ok := s.catalogue.Find(j.Type, j.Version); ok && a.Digest == digest {
		return a, nil
	}
	s.definitions.mu.Lock()
	defer s.definitions.mu.Unlock()
	if a := s.definitions.parsed[digest]; a != nil {
		return a, nil
	}
	var text []byte
	err := s.store.View(ctx, func(tx Tx) (err error) {
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
	if s.definitions.parsed == nil || len(s.definitions.parsed) >= maxDefinitions {
		s.definitions.parsed = map[string]*algorithm.File{}
	}
	s.definitions.parsed[digest] = a
	return a, nil
}
