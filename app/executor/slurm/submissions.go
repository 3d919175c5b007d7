package slurm

import (
	"maps"
	"sync"
	"time"
)

// submissions is what this process remembers of the names that it submitted.
// Losing it loses time, nothing else.
type submissions struct {
	mu        sync.Mutex
	at        map[string]time.Time // when a name was last submitted
	rejection map[string]string    // why a name may not be submitted yet
	refused   map[string]string    // why a name cannot be submitted again
	again     map[string]bool      // names that are being submitted again
	hurried   bool                 // Slurm's jobs are about to change
}

func newSubmissions() *submissions {
	return &submissions{at: map[string]time.Time{}, rejection: map[string]string{}, refused: map[string]string{}, again: map[string]bool{}}
}

// recordSubmission records that a name was submitted, and why that may have failed.
func (s *submissions) recordSubmission(name, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[name], s.hurried = time.Now(), true
	delete(s.rejection, name)
	if why != "" {
		s.rejection[name] = why
	}
}

// lastSubmitted returns when a name was last submitted, zero where this process did not.
func (s *submissions) lastSubmitted(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[name]
}

// whyPending says why the submission of a name may have failed, "" if nothing is
// known.
func (s *submissions) whyPending(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejection[name]
}

// whyRefused says why a name cannot be submitted again, "" if it can.
func (s *submissions) whyRefused(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[name]
}

// maySubmitAgain reports whether a name may be submitted again now.
func (s *submissions) maySubmitAgain(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again[name] {
		return false
	}
	s.again[name] = true
	return true
}

// finish ends what begin began. Whatever its result, it is not repeated at once.
func (s *submissions) finish(name, refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.again, name)
	s.at[name] = time.Now()
	if refused != "" {
		s.refused[name] = refused
	}
}

// forget drops names that were submitted long ago.
func (s *submissions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.at, func(name string, at time.Time) bool {
		if time.Since(at) < remembered || s.again[name] {
			return false
		}
		delete(s.rejection, name)
		delete(s.refused, name)
		return true
	})
}

// hurry says that Slurm's jobs are about to change.
func (s *submissions) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried = true
}

// hurryPending reports whether jobs are about to change, since calm was called.
func (s *submissions) hurryPending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hurried
}

// calm says that Slurm is being asked for its jobs.
func (s *submissions) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried = false
}
