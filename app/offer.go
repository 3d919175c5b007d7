package app

import "fmt"

// Algorithms lists what is on offer, one entry a type.
func (s *Service) Algorithms(Caller) []AlgorithmView {
	views := []AlgorithmView{}
	for _, typ := range s.catalogue.Types() {
		a, _ := s.catalogue.Find(typ, "")
		view := a.Summary(s.machineOf(a), s.catalogue.VersionNames(typ))
		s.checkExecutor(a, &view)
		views = append(views, view)
	}
	return views
}

// Algorithm gives all about one algorithm; version "" is the default.
func (s *Service) Algorithm(_ Caller, typ, version string) (*AlgorithmView, error) {
	a, ok := s.catalogue.Find(typ, version)
	if !ok {
		return nil, Errorf(NotFound, "there is no algorithm %q with version %q here; GET /algorithms lists what there is", typ, version)
	}
	view := a.View(s.machineOf(a), s.catalogue.VersionNames(typ))
	s.checkExecutor(a, &view)
	return &view, nil
}

// checkExecutor says in the view where an algorithm has nowhere to run.
func (s *Service) checkExecutor(a *Algorithm, view *AlgorithmView) {
	executor := s.executorOf(a)
	if _, ok := s.options.Machines[executor]; !ok {
		view.Ready = false
		view.Missing = []string{fmt.Sprintf("the executor %q is not configured", executor)}
	}
}

// machineOf is where an algorithm's jobs would run.
func (s *Service) machineOf(a *Algorithm) Machine {
	return s.options.Machines[s.executorOf(a)]
}
