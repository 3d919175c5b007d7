package limit

import (
	"fmt"
	"testing"
	"time"
)

// A flood of names takes no more memory than maxNames names, and does not reset a name
// that has just been rejected.
func TestLimiterForgetsFullBucketsFirst(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := NewRates(2, func() time.Time { return now })
	for i := range maxNames - 2 {
		l.Allow(fmt.Sprint("old ", i))
	}
	now = now.Add(time.Second) // their buckets are full again
	for range 2 {
		if !l.Allow("busy") {
			t.Fatal("the first events of a name are refused")
		}
	}
	for i := range maxNames / 2 {
		l.Allow(fmt.Sprint("new ", i))
		if n := len(l.byName); n > maxNames {
			t.Fatalf("%d names are kept, want at most %d", n, maxNames)
		}
	}
	if l.Allow("busy") {
		t.Error("a flood of other names lets a name go on")
	}
	if len(l.byName) > maxNames/2+1 {
		t.Errorf("%d names are kept, want those of the last second", len(l.byName))
	}
}

// The memory is bounded even if no bucket is full.
func TestLimiterIsBoundedThoughEveryNameIsBusy(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := NewRates(1, func() time.Time { return now })
	for i := range 3*maxNames + 1 {
		if !l.Allow(fmt.Sprint(i)) {
			t.Fatalf("name %d is refused", i)
		}
		if n := len(l.byName); n > maxNames {
			t.Fatalf("%d names are kept, want at most %d", n, maxNames)
		}
	}
	if l.Allow(fmt.Sprint(3 * maxNames)) {
		t.Error("a name that is still known is allowed again at once")
	}
}
