package server

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Limits on the garbage before a collection: a third of the memory in use, and at least
// 16 MiB. With Go's defaults, a small heap is collected every 4 MiB, which takes a
// seventh of the CPU time of many small requests, and a large heap doubles in size.
const (
	leastGarbage = 16 << 20
	leastPercent = 33  // of the memory in use
	mostPercent  = 400 // Go counts a smaller heap as 4 MiB, so this is at least 16 MiB
)

// pace maintains these limits. After each collection, it adapts to the memory in use.
type pace struct {
	mu      sync.Mutex
	percent int // current setting
	before  int // previous setting
	stopped bool
}

// keepPace keeps garbage within the limits until stop is called, unless GOGC is set in
// the environment.
func keepPace() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	p := &pace{percent: mostPercent} // until the memory in use is known
	p.before = debug.SetGCPercent(p.percent)
	p.afterNext()
	return p.stop
}

// afterNext schedules adapt to run after the next collection, which frees the object
// allocated here.
func (p *pace) afterNext() {
	runtime.AddCleanup(new([16]byte), (*pace).adapt, p)
}

func (p *pace) adapt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	percent := percentFor(inUse())
	if differ := math.Abs(float64(percent - p.percent)); differ > 0.1*float64(p.percent) { // each change stops all goroutines briefly
		debug.SetGCPercent(percent)
		p.percent = percent
	}
	p.afterNext()
}

func (p *pace) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	debug.SetGCPercent(p.before)
}

// percentFor returns the garbage limit, in percent of the bytes in use.
func percentFor(used uint64) int {
	return min(mostPercent, max(leastPercent, int(100*leastGarbage/max(used, 1))))
}

// inUse returns the number of bytes that the last collection found in use, as Go counts
// them for scheduling the next one.
func inUse() (sum uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}
