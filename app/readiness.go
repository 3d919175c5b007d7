package app

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// readyFor is how long an algorithm that was found ready counts as such: to
// look for its programs costs some system calls, which are too many for each
// of thousands of submissions a second. One that is not ready is looked at
// every time, and jobs whose program has just gone fail with a sentence.
const readyFor = time.Second

// readiness remembers which algorithms were found ready.
type readiness struct {
	mu    sync.Mutex
	found map[readyAt]time.Time // of the catalogue, so there are not many
}

// readyAt is an algorithm on one executor.
type readyAt struct {
	algorithm *Algorithm
	executor  string
}

func (r *readiness) recently(a readyAt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.found[a]
	return known && time.Since(at) < readyFor
}

func (r *readiness) note(a readyAt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil {
		r.found = map[readyAt]time.Time{}
	}
	r.found[a] = time.Now()
}

// has reports whether an executor of that name is configured.
func (s *Service) has(executor string) bool {
	_, ok := s.options.Machines[executor]
	return ok
}

// unready says why a caller's jobs can't run on an executor, "" where they can.
func (s *Service) unready(a *Algorithm, executor string) string {
	if !s.has(executor) {
		return fmt.Sprintf("%s runs on the executor %q, which is not configured here", a.Type, executor)
	}
	if s.ready.recently(readyAt{a, executor}) {
		return ""
	}
	if missing := s.missing(a, executor); len(missing) > 0 {
		return fmt.Sprintf("%s is not ready on this server: %s", a.Type, strings.Join(missing, "; "))
	}
	s.ready.note(readyAt{a, executor})
	return ""
}

// missing says what an executor lacks to run the algorithm.
func (s *Service) missing(a *Algorithm, executor string) []string {
	missing := a.Missing(s.options.Machines[executor])
	if executor == ExecutorLocal {
		return missing
	}
	if word := a.Placement.notAllowed(s.options.Routing.Allowed); word != "" {
		missing = append(missing, fmt.Sprintf("its [slurm] options have %s, which slurm.allow_options does not name", word))
	}
	return missing
}
