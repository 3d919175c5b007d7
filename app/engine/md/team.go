package md

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Looks at a number that another goroutine is about to change: so many without giving the
// processor away, then so many with it, and then the goroutine sleeps. A step has two
// barriers, and waking a goroutine takes longer than most of its work.
const (
	quickLooks = 2_000
	slowLooks  = 20_000
)

// Team is goroutines that share the work of a simulation. Close ends them.
type Team struct {
	size int
	wait sync.WaitGroup

	work  func(worker, task int)
	tasks int32
	next  atomic.Int32 // task that nobody has taken
	left  atomic.Int32 // workers that are not through with this round
	round atomic.Int64 // grows with every call of Each; negative: the end

	mu     sync.Mutex
	asleep int
	wake   sync.Cond
}

// NewTeam starts a number of workers, of which the caller of Each is one.
func NewTeam(cores int) *Team {
	t := &Team{size: cores}
	t.wake.L = &t.mu
	for worker := 1; worker < cores; worker++ {
		t.wait.Go(func() { t.serve(worker) })
	}
	return t
}

// Close ends the workers.
func (t *Team) Close() {
	t.round.Store(-1)
	t.rouse()
	t.wait.Wait()
}

// Size returns the number of workers.
func (t *Team) Size() int { return t.size }

// Each calls work for the tasks from 0 on, each once, and returns when all are done. Tasks
// begin in order; those at the same time must not touch the same data.
func (t *Team) Each(tasks int, work func(worker, task int)) {
	if t.size == 1 {
		for task := range tasks {
			work(0, task)
		}
		return
	}
	t.work, t.tasks = work, int32(tasks)
	t.next.Store(0)
	t.left.Store(int32(t.size))
	t.round.Add(1)
	t.rouse()
	t.take(0)
	for looks := 0; t.left.Load() > 0; looks++ {
		if looks > quickLooks {
			runtime.Gosched()
		}
	}
}

// take does tasks until there are no more.
func (t *Team) take(worker int) {
	for {
		task := t.next.Add(1) - 1
		if task >= t.tasks {
			t.left.Add(-1)
			return
		}
		t.work(worker, int(task))
	}
}

func (t *Team) serve(worker int) {
	for seen := int64(0); ; {
		seen = t.newRound(seen)
		if seen < 0 {
			return
		}
		t.take(worker)
	}
}

// newRound waits for another round than the one that was seen.
func (t *Team) newRound(seen int64) int64 {
	for looks := range quickLooks + slowLooks {
		if round := t.round.Load(); round != seen {
			return round
		}
		if looks > quickLooks {
			runtime.Gosched()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.round.Load() == seen {
		t.asleep++
		t.wake.Wait()
		t.asleep--
	}
	return t.round.Load()
}

// rouse wakes those who sleep.
func (t *Team) rouse() {
	t.mu.Lock()
	if t.asleep > 0 {
		t.wake.Broadcast()
	}
	t.mu.Unlock()
}
