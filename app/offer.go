package app

// Algorithms lists what is on offer, one entry a type.
func (s *Service) Algorithms(Caller) []AlgorithmView {
	views := []AlgorithmView{}
	for _, typ := range s.catalogue.Types() {
		a, _ := s.catalogue.Find(typ, "")
		views = append(views, a.Summary(s.machineOf(a), s.catalogue.VersionNames(typ)))
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
	return &view, nil
}

// machineOf is where an algorithm's jobs would run.
func (s *Service) machineOf(a *Algorithm) Machine {
	return s.options.Machines[s.executorOf(a)]
}
