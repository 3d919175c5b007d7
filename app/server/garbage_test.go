package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGarbageIsAThirdOfWhatIsInUseOrSixteenMiB(t *testing.T) {
	for used, want := range map[uint64]int{0: 400, 2 << 20: 400, 4 << 20: 400, 8 << 20: 200, 32 << 20: 50, 48 << 20: 33, 1 << 30: 33} {
		if got := percentFor(used); got != want {
			t.Errorf("of %d bytes: %d %%, want %d %%", used, got, want)
		}
	}
}

// TestPaceFollowsTheHeap allocates memory and frees it again.
func TestPaceFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	stop := keepPace()
	large := make([]byte, 256<<20)
	awaitPercent(t, "with 256 MiB in use", func(percent int) bool { return percent == leastPercent })
	runtime.KeepAlive(large)
	large = nil
	awaitPercent(t, "with little in use", func(percent int) bool { return percent > 3*leastPercent })
	stop()
	runtime.GC()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("%d %% afterwards, want 100 as before", got)
	}
	t.Setenv("GOGC", "70")
	keepPace()()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("%d %% although GOGC is set", got)
	}
}

// awaitPercent collects garbage until the percentage is right.
func awaitPercent(t *testing.T, when string, right func(percent int) bool) {
	t.Helper()
	for range 500 {
		runtime.GC()
		percent := gcPercent()
		if right(percent) {
			return
		}
		time.Sleep(10 * time.Millisecond) // for the cleanup
	}
	t.Fatalf("%s: %d %%", when, gcPercent())
}

func gcPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
