package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	seeds   = flag.Uint64("seeds", 100, "number of the last seed to run")
	first   = flag.Uint64("first", 1, "number of the first seed to run")
	twice   = flag.Uint64("twice", 5, "number of seeds to run twice")
	oneSeed = flag.Int64("seed", -1, "run only this seed; -v shows the trace")
)

// seedTimeout is the maximum real time for one seed, even on a slow machine.
const seedTimeout = 2 * time.Minute

// TestSeeds runs the plans of many seeds, and fails at the first in which a check fails.
func TestSeeds(t *testing.T) {
	if *oneSeed >= 0 {
		o := runSeed(t, planOf(uint64(*oneSeed)))
		t.Logf("seed %d:\n%s", *oneSeed, o.trace)
		report(t, uint64(*oneSeed), o)
		return
	}
	last := *seeds
	if testing.Short() {
		last = min(last, 20)
	}
	var flown record
	var next atomic.Uint64
	next.Store(*first - 1)
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("worker ", worker+1), func(t *testing.T) {
			t.Parallel()
			for seed := next.Add(1); seed <= last && !t.Failed(); seed = next.Add(1) {
				o := runSeed(t, planOf(seed))
				flown.add(o)
				report(t, seed, o)
			}
		})
	}
	t.Cleanup(func() { flown.check(t) })
}

// record counts, over many seeds, the events of workers and the jobs that got more
// memory.
type record struct {
	mu                   sync.Mutex
	seeds, flown, raised int
	workerCounts
}

func (r *record) add(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := o.flights
	r.seeds++
	r.raised += o.raised
	if f.rows > 0 {
		r.flown++
	}
	r.workerCounts.add(f)
}

// check checks that the seeds have covered every kind of event of workers.
func (r *record) check(t *testing.T) {
	t.Logf("workers in %d of %d seeds: %+v; memory raised %d times", r.flown, r.seeds, r.workerCounts, r.raised)
	if r.seeds < 15 || t.Failed() {
		return
	}
	if r.raised < r.seeds {
		t.Errorf("memory was raised only %d times in %d seeds", r.raised, r.seeds)
	}
	if 2*r.flown < r.seeds {
		t.Errorf("only %d of %d seeds had workers", r.flown, r.seeds)
	}
	f := r.workerCounts
	least := min(f.pulled, f.died, f.lost, f.returned, f.givenBack, f.refused)
	if r.seeds >= 80 {
		least = min(least, f.stopped, f.adopted) // these are rare
	}
	if least == 0 {
		t.Error("the seeds did not cover everything that can happen to workers")
	}
}

// runSeed runs a plan. If the plan hangs or panics, it prints the seed.
func runSeed(t *testing.T, p plan) outcome {
	watch := time.AfterFunc(seedTimeout, func() { panic(fmt.Sprintf("seed %d does not end", p.seed)) })
	defer watch.Stop()
	defer func() {
		if v := recover(); v != nil {
			panic(fmt.Sprintf("seed %d: %v", p.seed, v))
		}
	}()
	return run(t, p)
}

// report fails the test and prints a minimal plan that still fails.
func report(t *testing.T, seed uint64, o outcome) {
	t.Helper()
	if len(o.faults) == 0 {
		return
	}
	p := planOf(seed)
	short := shrink(p, 100, func(p plan) bool { return len(runSeed(t, p).faults) > 0 })
	shortest := runSeed(t, short)
	t.Errorf("seed %d: %s\nIts %d steps shrink to %d, which fail with: %s\n%s\nRepeat the whole seed with: go test ./app/test/simulation -seed %d -v",
		seed, o.faults[0], len(p.steps), len(short.steps), shortest.faults[0], shortest.trace, seed)
}

// TestSameSeedSameTrace runs seeds twice, the second time with random delays, because a
// failing seed must be reproducible regardless of the machine's speed.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	for seed := range *twice {
		p := planOf(1_000_000 + seed)
		first := runSeed(t, p)
		second := runStalled(t, p, stallNowAndThen)
		if first.trace != second.trace {
			t.Errorf("the traces of seed %d differ %s", p.seed, firstDifference(first.trace, second.trace))
		}
	}
}

// stallNowAndThen sometimes sleeps in real time, which time.Sleep does not do in a
// bubble.
func stallNowAndThen() {
	if rand.IntN(20) == 0 {
		_ = syscall.Nanosleep(&syscall.Timespec{Nsec: rand.Int64N(300_000)}, nil) // an interrupted sleep is fine
	}
}

// firstDifference returns the lines at which two traces diverge, and some lines before
// them.
func firstDifference(a, b string) string {
	one, two := strings.Split(a, "\n"), strings.Split(b, "\n")
	n := 0
	for n < min(len(one), len(two)) && one[n] == two[n] {
		n++
	}
	before := strings.Join(one[max(0, n-20):n], "\n")
	after := func(lines []string) string { return strings.Join(lines[n:min(n+5, len(lines))], "\n") }
	return fmt.Sprintf("from line %d on, after\n%s\nfirst\n%s\nthen\n%s", n+1, before, after(one), after(two))
}
