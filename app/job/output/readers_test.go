package output

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestAKeyReadsOneFileAtATimeAndAllAFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReaders(2)
		begin := func(ctx context.Context, holder string) func() {
			t.Helper()
			end, err := r.begin(ctx, holder)
			must.OK(t, err)
			return end
		}
		ann := begin(t.Context(), "ann")
		bob := begin(t.Context(), "bob")
		if _, err := r.begin(t.Context(), "eve"); !errors.Is(err, fault.Unavailable) { // after 30 s of the test's clock
			t.Errorf("a third read: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.begin(ctx, "eve"); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that has left: %v", err)
		}
		begun := make(chan func(), 1)
		go func() { begun <- begin(t.Context(), "ann") }()
		synctest.Wait()
		if len(begun) != 0 {
			t.Fatal("ann reads two files at once")
		}
		bob()
		ann()
		synctest.Wait()
		select {
		case end := <-begun:
			end()
		default:
			t.Error("ann's second read did not begin in 30 s, as it may")
		}
		if len(r.turns) != 0 || len(r.slots) != 0 {
			t.Errorf("%d turns and %d slots are left", len(r.turns), len(r.slots))
		}
	})
}

func TestAKeyThatWaitsForTooManyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReaders(2)
		end, err := r.begin(t.Context(), "ann")
		must.OK(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		for range maxWaiting - 1 {
			go func() { _, _ = r.begin(ctx, "ann") }()
		}
		synctest.Wait()
		if _, err := r.begin(t.Context(), "ann"); !errors.Is(err, fault.RateLimited) {
			t.Errorf("one more: %v", err)
		}
		cancel()
		synctest.Wait()
		end()
		must.Equal(t, "turns are left", len(r.turns), 0)
	})
}
