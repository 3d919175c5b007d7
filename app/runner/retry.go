package runner

import (
	"context"
	"errors"
	"syscall"
	"time"

	"molrun/app/base/fault"
)

// serviceTimeout bounds one call to the service.
const serviceTimeout = time.Minute

// backoff provides growing pauses between retries.
type backoff struct{ next, most time.Duration }

func serviceBackoff() backoff { return backoff{100 * time.Millisecond, 30 * time.Second} }

func (b *backoff) pause() time.Duration {
	pause := b.next
	b.next = min(2*b.next, b.most)
	return pause
}

func (b *backoff) wait(ctx context.Context) { sleep(ctx, b.pause()) }

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// temporary reports whether a later retry might succeed.
func temporary(err error) bool {
	return noSpace(err) || exhausted(err) || errors.Is(err, fault.Unavailable) || errors.Is(err, fault.StorageFull) ||
		errors.Is(err, context.DeadlineExceeded)
}

// noSpace reports whether err means that the disk or a disk quota is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// exhausted reports whether err means that the machine or this process is out of open
// files, processes or memory.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}
