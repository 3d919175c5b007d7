package decode

import "sync"

// Budget bounds the memory of all bodies together: it counts the bytes of
// requests that are being received or handled.
type Budget struct {
	size, share int64
	chunks      sync.Pool // *[]byte of largestChunk, reused by all bodies

	mu       sync.Mutex
	taken    int64
	byHolder map[string]int64 // without holders that have nothing
}

// NewBudget returns a budget of size bytes, of which each holder may use share.
func NewBudget(size, share int64) *Budget {
	return &Budget{size: size, share: share, byHolder: map[string]int64{}}
}

// take counts n bytes of a holder, and reports whether they are within the budget.
func (b *Budget) take(holder string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken += n
	b.byHolder[holder] += n
	return b.taken <= b.size && b.byHolder[holder] <= b.share
}

func (b *Budget) give(holder string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
	if b.byHolder[holder] -= n; b.byHolder[holder] == 0 {
		delete(b.byHolder, holder)
	}
}
