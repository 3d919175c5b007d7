package output

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestReadsWaitHalfAMinuteAndAFewOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Outputs{readers: newReaders(2)}
		ann, err := o.beginRead(t.Context(), "ann")
		must.OK(t, err)
		bob, err := o.beginRead(t.Context(), "bob")
		must.OK(t, err)
		if _, err := o.beginRead(t.Context(), "eve"); !errors.Is(err, fault.Unavailable) {
			t.Errorf("a third read: %v", err)
		}
		bob()
		if _, err := o.beginRead(t.Context(), "ann"); !errors.Is(err, fault.Unavailable) {
			t.Errorf("a second read of ann, who has one: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range maxWaiting - 1 {
			go func() { _, _ = o.beginRead(ctx, "ann") }()
		}
		synctest.Wait()
		if _, err := o.beginRead(t.Context(), "ann"); !errors.Is(err, fault.RateLimited) {
			t.Errorf("one more than can wait: %v", err)
		}
		cancel()
		synctest.Wait()
		ann()
		ann, err = o.beginRead(t.Context(), "ann")
		must.OK(t, err)
		ann()
	})
}
