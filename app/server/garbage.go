package server

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// How much garbage there may be before it is collected: half of what is in use, and leastGarbage at
// least. With Go's presets, a small heap waits for four MiB, which takes a seventh of the CPU time of
// many small requests, and a large one doubles.
const (
	leastGarbage = 16 << 20
	mostPercent  = 33 // of what is in use, beyond leastGarbage
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
	p := &pace{percent: mostPercent}
	p.before = debug.SetGCPercent(mostPercent)
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
	return max(mostPercent, int(100*leastGarbage/max(used, 1<<20)))
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
