package blobs

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestANewerWriterEndsTheWaitOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newUploadWriters()
		interrupted := 0
		release, err := turns.acquire(t.Context(), "a", func() { interrupted++ }) // this writer is slow to end
		must.OK(t, err)
		start := time.Now()
		take := func() chan error {
			ended := make(chan error, 1)
			go func() {
				_, err := turns.acquire(t.Context(), "a", func() {})
				ended <- err
			}()
			synctest.Wait()
			return ended
		}
		older, newer := take(), take()
		if err := <-older; !errors.As(err, new(abortError)) || time.Since(start) > 0 {
			t.Errorf("the older one ends after %v: %v", time.Since(start), err)
		}
		if err := <-newer; !errors.Is(err, fault.Unavailable) || time.Since(start) != finishTime {
			t.Errorf("the newer one ends after %v: %v", time.Since(start), err)
		}
		must.Equal(t, "interruptions", interrupted, 1)
		other, err := turns.acquire(t.Context(), "b", func() {})
		must.OK(t, err)
		other()
		release()
		must.Equal(t, "writers", len(turns.writers), 0)
	})
}
