package validator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// hold occupies the pool with a user's in-process checks until the test ends.
func hold(ctx context.Context, p *Pool, user string, files int) {
	for range files {
		go func() {
			_ = p.CheckInProcess(ctx, user, func(reading context.Context) error {
				<-reading.Done()
				return reading.Err()
			})
		}()
	}
	synctest.Wait()
}

func noCheck(context.Context) error { return nil }

func TestNoUserTakesTheLastSlot(t *testing.T) {
	for _, slots := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPool(PoolOptions{Wait: time.Second})
			p.builtin = newSlots(slots)
			ctx, cancel := context.WithCancel(t.Context())
			defer func() { cancel(); synctest.Wait() }()
			hold(ctx, p, "ann", max(1, slots-1))
			if err := p.CheckInProcess(t.Context(), "ann", noCheck); !errors.Is(err, fault.Unavailable) {
				t.Errorf("%d slots: one more of ann: %v", slots, err)
			}
			if slots > 1 {
				must.OK(t, p.CheckInProcess(t.Context(), "bob", noCheck))
			}
		})
	}
}

func TestWaitForASlotTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(PoolOptions{Wait: 20 * time.Second})
		p.builtin = newSlots(1)
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		hold(ctx, p, "ann", 1)
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := p.CheckInProcess(gone, "bob", noCheck); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that went away: %v", err)
		}
		start := time.Now()
		if err := p.CheckInProcess(t.Context(), "bob", noCheck); fault.CodeOf(err) != fault.Unavailable || time.Since(start) != 20*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestClosedPoolRejectsChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(PoolOptions{})
		p.builtin = newSlots(1)
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		hold(ctx, p, "ann", 1)
		waits := make(chan error, 1)
		go func() { waits <- p.CheckInProcess(t.Context(), "bob", noCheck) }()
		synctest.Wait()
		p.Close()
		for _, err := range []error{<-waits, p.CheckInProcess(t.Context(), "bob", noCheck)} {
			if !errors.Is(err, errStopping) {
				t.Errorf("when the service stops: %v", err)
			}
		}
	})
}
