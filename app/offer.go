package app

import (
	"molrun/app/algorithm"
	"molrun/app/fault"
)

// Algorithms lists what is on offer, one entry a type.
func (s *Service) Algorithms(by Caller) []algorithm.View {
	views := []algorithm.View{}
	for _, typ := range s.catalogue.Types() {
		a, _ := s.catalogue.Find(typ, "")
		views = append(views, a.Summary(s.router.MissingFor(a, by.routed()), s.catalogue.VersionNames(typ)))
	}
	return views
}

// Algorithm gives all about one algorithm; version "" is the default.
func (s *Service) Algorithm(by Caller, typ, version string) (*algorithm.View, error) {
	a, ok := s.catalogue.Find(typ, version)
	if !ok {
		return nil, fault.Errorf(fault.NotFound, "there is no algorithm %q with version %q here; GET /algorithms lists what there is", typ, version)
	}
	view := a.View(s.router.MissingFor(a, by.routed()), s.catalogue.VersionNames(typ))
	return &view, nil
}
