package slurm

import (
	"maps"
	"sync"
	"time"
)

// submissions caches state of the names that this process submitted. Losing it only costs
// time.
type submissions struct {
	mu        sync.Mutex
	at        map[string]time.Time // when a name was last submitted
	rejection map[string]string    // why a name can't be submitted yet
	refused   map[string]string    // why a name can't be submitted again
	again     map[string]bool      // names being submitted again
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

// lastSubmitted returns when this process last submitted a name, or zero if it did not.
func (s *submissions) lastSubmitted(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[name]
}

// whyPending returns why the submission of a name may have failed, or "" if nothing is
// known.
func (s *submissions) whyPending(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejection[name]
}

// whyRefused returns why a name can't be submitted again, or "" if it can.
func (s *submissions) whyRefused(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[name]
}

// maySubmitAgain reports whether a name can be submitted again now, and marks it until
// finish.
func (s *submissions) maySubmitAgain(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again[name] {
		return false
	}
	s.again[name] = true
	return true
}

// finish ends the resubmission that maySubmitAgain allowed. Whatever the result, it is
// not repeated at once.
func (s *submissions) finish(name, refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.again, name)
	s.at[name] = time.Now()
	if refused != "" {
		s.refused[name] = refused
	}
}

// forget drops names submitted long ago.
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

// expectChange records that Slurm's jobs are about to change.
func (s *submissions) expectChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried = true
}

// hurryPending reports whether expectChange was called after the last resetExpectChange.
func (s *submissions) hurryPending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hurried
}

// resetExpectChange clears the expectation of a change, because Slurm is being queried
// for its jobs.
func (s *submissions) resetExpectChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried = false
}
