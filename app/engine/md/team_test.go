package md

import (
	"sync/atomic"
	"testing"
	"time"
)

// Each task is done once, by whoever is there; nobody waits for a worker that is held up
// before it takes a task.
func TestTeamDoesEachTaskOnce(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 5} {
		team := NewTeam(size)
		for _, tasks := range []int{0, 1, 3, 100} {
			for range 50 {
				done := make([]atomic.Int32, tasks)
				team.Each(tasks, func(worker, task int) {
					if worker < 0 || worker >= size {
						t.Errorf("worker %d of %d", worker, size)
					}
					done[task].Add(1)
				})
				for task := range done {
					if n := done[task].Load(); n != 1 {
						t.Fatalf("%d workers did task %d of %d %d times", size, task, tasks, n)
					}
				}
			}
		}
		team.Close()
	}
}

// A round ends only when its last task has, however long another worker takes for it, and one
// that sleeps meanwhile is woken for the next round.
func TestTeamWaitsForSlowTasks(t *testing.T) {
	t.Parallel()
	team := NewTeam(3)
	defer team.Close()
	var done, others atomic.Int32
	for round := range int32(5) {
		team.Each(20, func(worker, _ int) {
			if worker == 0 {
				time.Sleep(time.Millisecond) // leaves tasks to others
			} else {
				others.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
			done.Add(1)
		})
		if n := done.Load(); n != 20*(round+1) {
			t.Fatalf("%d tasks were done after round %d", n, round+1)
		}
	}
	if others.Load() == 0 {
		t.Error("one worker did it all")
	}
}
