package server

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// How much garbage there may be before it is collected: a third of what is in use, and 16 MiB at
// least. With Go's presets, a small heap waits for four MiB, which takes a seventh of the CPU time of
// many small requests, and a large one doubles.
const (
	leastGarbage = 16 << 20
	leastPercent = 33  // of what is in use
	mostPercent  = 400 // a heap of less than 4 MiB counts as one of 4 MiB for Go, so that this is 16 MiB of garbage
)

// pace keeps to these bounds: after each collection it looks at what is in use.
type pace struct {
	mu      sync.Mutex
	percent int // that is set
	before  int // that was set
	stopped bool
}

// keepPace has garbage collected within the bounds until stop is called, unless the environment has a GOGC.
func keepPace() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	p := &pace{percent: mostPercent} // until it is known what is in use
	p.before = debug.SetGCPercent(p.percent)
	p.afterNext()
	return p.stop
}

// afterNext has adapt called after the next collection, which finds that nothing refers to what is made here.
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
	if differ := math.Abs(float64(percent - p.percent)); differ > 0.1*float64(p.percent) { // each change stops all goroutines for a moment
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

// percentFor is how much garbage there may be, in percent of the bytes in use.
func percentFor(used uint64) int {
	return min(mostPercent, max(leastPercent, int(100*leastGarbage/max(used, 1))))
}

// inUse is how many bytes the last collection found in use, as Go counts them for the next.
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
