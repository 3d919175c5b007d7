package app

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Service is every use case, one method each. It holds the rules and knows no
// technology: records go through Store, files through Blobs.
type Service struct {
	store     Store
	blobs     Blobs
	catalogue *Catalogue
	options   Options
	log       zerolog.Logger
	ids       *idSource
	cursors   cursorKey

	wake    chan struct{} // nudges the runner; capacity 1
	changes changes
	live    liveStates
}

// Options are what a service needs besides its parts.
type Options struct {
	Now       func() time.Time // wall clock; only shown and stored
	Secret    []byte           // 32 bytes; signs cursors
	UploadTTL time.Duration    // of upload links and an upload's download link
	Executor  string           // where algorithms with executor "any" run
	Machines  map[string]Machine
	Program   string // path of this binary, for {molrun}
	Log       zerolog.Logger
}

// NewService joins the parts. It refuses a short secret.
func NewService(store Store, blobs Blobs, catalogue *Catalogue, o Options) (*Service, error) {
	panic("see below")
}

// Wake gives the channel that receives when there may be something to start
// or stop.
func (s *Service) Wake() <-chan struct{} { return s.wake }

type changes struct{ mu sync.Mutex }
type liveStates struct{ mu sync.Mutex }
type cursorKey []byte

var _ = context.Background
