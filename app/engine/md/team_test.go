package md

import (
	"sync/atomic"
	"testing"
	"time"

	"molrun/app/test/must"
)

// Each task is run once, by any idle worker; a worker that is delayed before it starts a
// task does not delay the others.
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

// A round ends with its last task, even if one worker is slow, and sleeping workers are
// woken for the next round.
func TestTeamWaitsForSlowTasks(t *testing.T) {
	t.Parallel()
	team := NewTeam(3)
	defer team.Close()
	var done, others atomic.Int32
	for round := range int32(5) {
		before := others.Load()
		team.Each(20, func(worker, _ int) {
			if worker == 0 {
				must.Become(t, "another worker takes a task", func() bool { return others.Load() > before })
			} else {
				others.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
			done.Add(1)
		})
		must.Equal(t, "tasks that are done after the round", done.Load(), 20*(round+1))
	}
}
