package app

import (
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
	found map[*Algorithm]time.Time // of the catalogue, so there are not many
}

func (r *readiness) recently(a *Algorithm) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.found[a]
	return known && time.Since(at) < readyFor
}

func (r *readiness) note(a *Algorithm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil {
		r.found = map[*Algorithm]time.Time{}
	}
	r.found[a] = time.Now()
}
