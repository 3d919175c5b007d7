package app

import "fmt"

// Algorithms lists what is on offer, one entry a type.
func (s *Service) Algorithms(by Caller) []AlgorithmView {
	views := []AlgorithmView{}
	for _, typ := range s.catalogue.Types() {
		a, _ := s.catalogue.Find(typ, "")
		views = append(views, a.Summary(s.missingFor(a, by), s.catalogue.VersionNames(typ)))
	}
	return views
}

// Algorithm gives all about one algorithm; version "" is the default.
func (s *Service) Algorithm(by Caller, typ, version string) (*AlgorithmView, error) {
	a, ok := s.catalogue.Find(typ, version)
	if !ok {
		return nil, Errorf(NotFound, "there is no algorithm %q with version %q here; GET /algorithms lists what there is", typ, version)
	}
	view := a.View(s.missingFor(a, by), s.catalogue.VersionNames(typ))
	return &view, nil
}

// missingFor says what a caller's jobs lack wherever they would run; empty where
// some of them can.
func (s *Service) missingFor(a *Algorithm, by Caller) []string {
	var first []string
	for _, executor := range s.executorsFor(a, by) {
		missing := []string{fmt.Sprintf("the executor %q is not configured", executor)}
		if s.has(executor) {
			missing = s.missing(a, executor)
		}
		if len(missing) == 0 {
			return missing
		}
		if first == nil {
			first = missing
		}
	}
	return first
}
