package edge

import "sync"

// Shares bounds how much each name has of something at the same time.
type Shares struct {
	most int

	mu    sync.Mutex
	taken map[string]int // without names that have nothing
}

// NewShares returns shares of most each, at least one.
func NewShares(most int) *Shares { return &Shares{most: max(1, most), taken: map[string]int{}} }

// Take takes one for name until release is called, or reports that name has all
// of its share.
func (s *Shares) Take(name string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[name] >= s.most {
		return nil, false
	}
	s.taken[name]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[name]--; s.taken[name] == 0 {
			delete(s.taken, name)
		}
	}, true
}
