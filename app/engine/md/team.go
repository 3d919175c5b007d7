package md

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Parameters for polling for a change by another goroutine: first spin, then yield the
// processor, then sleep. A step has two barriers, and waking a goroutine takes longer
// than most of the work of a step.
const (
	quickPolls = 2_000
	slowPolls  = 500
	shortSleep = 50 * time.Microsecond
)

// Team is a set of goroutines that share the work of a simulation. Close ends them. If
// other processes compete for the processors, a worker might not run for milliseconds.
// Because tasks are assigned dynamically, the other workers then run its tasks.
type Team struct {
	size int
	wait sync.WaitGroup

	round atomic.Pointer[round] // latest round; a round without work ends the workers

	mu     sync.Mutex
	asleep int
	wake   sync.Cond
}

// round is a call of Each.
type round struct {
	work  func(worker, task int)
	tasks int32
	next  atomic.Int32 // next task to run
	done  atomic.Int32 // number of finished tasks
}

// NewTeam starts a team with the given number of workers, including the caller of Each.
func NewTeam(cores int) *Team {
	t := &Team{size: cores}
	t.wake.L = &t.mu
	for worker := 1; worker < cores; worker++ {
		t.wait.Go(func() { t.serve(worker) })
	}
	return t
}

// Close stops the workers and waits for them.
func (t *Team) Close() {
	t.startRound(&round{})
	t.wait.Wait()
}

// Size returns the number of workers.
func (t *Team) Size() int { return t.size }

// Each calls work once for each task from 0 on, and returns when all tasks are done.
// Tasks start in order; they run concurrently and must not touch the same data.
func (t *Team) Each(tasks int, work func(worker, task int)) {
	if t.size == 1 {
		for task := range tasks {
			work(0, task)
		}
		return
	}
	r := &round{work: work, tasks: int32(tasks)}
	t.startRound(r)
	r.runTasks(0)
	for looks := 0; r.done.Load() < r.tasks; looks++ {
		switch {
		case looks > quickPolls+slowPolls:
			time.Sleep(shortSleep) // the other worker might need this processor
		case looks > quickPolls:
			runtime.Gosched()
		}
	}
}

// runTasks runs tasks until there are none left.
func (r *round) runTasks(worker int) {
	for task := r.next.Add(1) - 1; task < r.tasks; task = r.next.Add(1) - 1 {
		r.work(worker, int(task))
		r.done.Add(1)
	}
}

func (t *Team) serve(worker int) {
	for seen := (*round)(nil); ; {
		seen = t.newRound(seen)
		if seen.work == nil {
			return
		}
		seen.runTasks(worker)
	}
}

// newRound waits for a round other than seen.
func (t *Team) newRound(seen *round) *round {
	for looks := range quickPolls + slowPolls {
		if r := t.round.Load(); r != seen {
			return r
		}
		if looks > quickPolls {
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

// startRound starts a round and wakes sleeping workers.
func (t *Team) startRound(r *round) {
	t.round.Store(r)
	t.mu.Lock()
	if t.asleep > 0 {
		t.wake.Broadcast()
	}
	t.mu.Unlock()
}
