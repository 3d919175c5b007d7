package blobs

import (
	"sync"

	"molrun/app/fault"
)

// transfers counts the uploads and downloads that are on their way: all
// together, and those by links of one holder.
type transfers struct {
	most, mostPerHolder int

	mu       sync.Mutex
	all      int
	byHolder map[string]int
}

func newTransfers(most, mostPerHolder int) *transfers {
	return &transfers{most: most, mostPerHolder: mostPerHolder, byHolder: map[string]int{}}
}

// begin takes room for a transfer, and tells how to give it back.
func (t *transfers) begin(holder string) (end func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.all >= t.most:
		return nil, fault.Errorf(fault.Unavailable, "Too many files are on their way at once; try again in a few seconds.")
	case holder != "" && t.byHolder[holder] >= t.mostPerHolder:
		return nil, fault.Errorf(fault.Unavailable, "Too many files are on their way at once by links of one API key; try again when some have arrived.")
	}
	t.all++
	t.byHolder[holder]++
	return func() { t.end(holder) }, nil
}

func (t *transfers) end(holder string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.byHolder[holder]--; t.byHolder[holder] == 0 {
		delete(t.byHolder, holder)
	}
}
