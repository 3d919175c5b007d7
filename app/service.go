package app

import (
	"context"
	"errors"

	"molrun/app/algorithm"
	"molrun/app/algorithm/routing"
	"molrun/app/algorithm/validator"
	"molrun/app/base/sortid"
)

// Service provides every use case, grouped by noun. It implements the rules and is
// independent of any technology: it accesses records through a Store and files through
// Blobs.
type Service struct {
	Jobs       *Jobs       // submit, show, cancel, fetch results
	Algorithms *Algorithms // available algorithms
	Runs       *Runs       // queries and reports of the runner
}

// NewService returns a service that uses these dependencies.
func NewService(store Store, blobs Blobs, catalogue *algorithm.Catalogue, o Options) (*Service, error) {
	if o.Now == nil {
		return nil, errors.New("a service needs a clock")
	}
	if o.Validators == nil {
		o.Validators = validator.NewPool(validator.PoolOptions{})
	}
	c := &core{
		store:       store,
		blobs:       blobs,
		catalogue:   catalogue,
		router:      routing.New(o.Routing),
		options:     o,
		ids:         sortid.NewSource(store.HighWaterMark()),
		wake:        make(chan struct{}, 1),
		wakeChanges: make(chan struct{}, 1),
	}
	if err := c.loadDrain(context.Background()); err != nil {
		return nil, err
	}
	return &Service{
		Jobs:       &Jobs{core: c},
		Algorithms: &Algorithms{c},
		Runs:       &Runs{c},
	}, nil
}
