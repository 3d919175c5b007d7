package limit

import "sync"

// Budget is an amount of bytes or requests that holders take and give back. The fields
// are set before the first use.
type Budget struct {
	All   int64 // limit for all holders together; 0 means no limit
	Share int64 // limit for each holder except ""; 0 means no limit

	Spent      error // returned by Take if All is exceeded
	ShareSpent error // returned by Take if Share is exceeded

	mu       sync.Mutex
	taken    int64
	byHolder map[string]int64 // only holders whose amount is not 0
}

// Take takes the whole amount for a holder, or returns an error.
func (b *Budget) Take(holder string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.Share > 0 && holder != "" && b.byHolder[holder]+n > b.Share:
		return b.ShareSpent
	case b.All > 0 && b.taken+n > b.All:
		return b.Spent
	}
	if b.byHolder == nil {
		b.byHolder = map[string]int64{}
	}
	b.taken += n
	b.byHolder[holder] += n
	return nil
}

// Give gives back an amount taken by a holder.
func (b *Budget) Give(holder string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
	if left := b.byHolder[holder] - n; left != 0 {
		b.byHolder[holder] = left
		return
	}
	delete(b.byHolder, holder)
}

// One takes 1 until release is called, or returns an error.
func (b *Budget) One(holder string) (release func(), err error) {
	if err := b.Take(holder, 1); err != nil {
		return nil, err
	}
	return func() { b.Give(holder, 1) }, nil
}
