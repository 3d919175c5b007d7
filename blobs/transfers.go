package blobs

import (
	"sync"

	"molrun/app/base/fault"
)

// transfers limits concurrent uploads and downloads: all together, and those by
// links of one holder.
type transfers struct {
	max, maxPerHolder int

	mu       sync.Mutex
	all      int
	byHolder map[string]int
}

func newTransfers(limit, limitPerHolder int) *transfers {
	return &transfers{max: limit, maxPerHolder: limitPerHolder, byHolder: map[string]int{}}
}

// begin counts a transfer until end is called, or refuses it.
func (t *transfers) begin(holder string) (end func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.all >= t.max:
		return nil, fault.Errorf(fault.Unavailable, "Too many files are on their way at once; try again in a few seconds.")
	case holder != "" && t.byHolder[holder] >= t.maxPerHolder:
		return nil, fault.Errorf(fault.Unavailable, "Too many files are on their way at once by links of one API key; try again when some have arrived.")
	}
	t.all++
	t.byHolder[holder]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all--
		if t.byHolder[holder]--; t.byHolder[holder] == 0 {
			delete(t.byHolder, holder)
		}
	}, nil
}
