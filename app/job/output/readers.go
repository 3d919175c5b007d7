package output

import (
	"context"
	"time"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
)

// Limits on reading whole files for series and tables.
const (
	maxRead    = 1 << 30 // bytes of a file
	readWait   = 30 * time.Second
	maxWaiting = 16 // requests of one holder
)

// newReaders limits how many whole files are read at once: atOnce in total, and one per
// holder of an API key.
func newReaders(atOnce int) *limit.Slots {
	return &limit.Slots{
		All: atOnce, Each: 1, MaxRequests: maxWaiting,
		ErrTooManyRequests: fault.Errorf(fault.RateLimited, "This API key has too many requests for series and tables in progress; wait until some have finished."),
	}
}

var errReadBusy = fault.Errorf(fault.Unavailable, "Too many series and tables are being read; try again in a few seconds.")

// beginRead waits until the holder is allowed to read. The caller must call end
// afterwards.
func (o *Outputs) beginRead(ctx context.Context, holder string) (end func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readWait, errReadBusy)
	defer cancel()
	return o.readers.Take(ctx, holder)
}
