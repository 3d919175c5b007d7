package app

import (
	"context"
	"fmt"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
)

// Algorithms lists the available algorithms.
type Algorithms struct{ *core }

// List returns the available algorithms, one entry per type.
func (s *Algorithms) List(by Caller) []algorithm.View {
	views, offer := []algorithm.View{}, s.catalogue.Snapshot()
	for _, typ := range offer.Types() {
		a, _ := offer.Find(typ, "")
		views = append(views, a.Summary(s.router.MissingFor(a, by.routed()), offer.VersionNames(typ)))
	}
	return views
}

// Get returns everything about one algorithm; version "" is the default.
func (s *Algorithms) Get(by Caller, typ, version string) (*algorithm.View, error) {
	a, ok := s.catalogue.Find(typ, version)
	if !ok {
		of := ""
		if version != "" {
			of = fmt.Sprintf(" with version %q", version)
		}
		return nil, fault.Errorf(fault.NotFound, "there is no algorithm %q%s on this server; GET /algorithms lists the available ones", typ, of)
	}
	view := a.View(s.router.MissingFor(a, by.routed()), s.catalogue.VersionNames(typ))
	return &view, nil
}

// Current returns a job's algorithm as currently offered or, if that version is no longer
// available, the file that the job was validated against.
func (s *Algorithms) Current(ctx context.Context, j *Job) (*algorithm.File, error) {
	if a, ok := s.catalogue.Find(j.Type, j.Version); ok {
		return a, nil
	}
	return s.algorithmOf(ctx, j)
}
