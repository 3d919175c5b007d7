package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

// TestOrderIsThatInWhichJobsStart starts a whole queue on an executor without limits,
// after a random history, and compares the order with the computed positions.
func TestOrderIsThatInWhichJobsStart(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := newBoard(t, app.Capacity{})
		b.turns = NewFairShare(app.Capacity{}, false, time.Minute)
		users := []string{"ann", "bob", "cy", "dee"}
		id := 0
		add := func() {
			id++
			b.addUrgent(users[r.IntN(len(users))], fmt.Sprintf("%03d", id), r.IntN(3)-1, cpus(1))
		}
		for range r.IntN(12) {
			add()
			if r.IntN(3) == 0 {
				b.play(true)
			}
		}
		b.play(true)
		for id := range b.runs {
			if r.IntN(2) == 0 {
				b.end(string(id))
			}
		}
		for range 1 + r.IntN(30) {
			add()
		}
		if n := r.IntN(len(b.queue) * 2); n < len(b.queue) { // in half of the cases, a job has the reservation
			w := b.queue[n]
			b.turns.passed[w.ID] = &passedOver{Waiting: w, since: b.now.Add(-time.Hour)}
		}
		want := positions(b)
		_, started := b.play(true)
		for i, id := range started {
			if want[app.JobID(id)] != i+1 {
				t.Fatalf("seed %d: %s started as number %d, its position was %d", seed, id, i+1, want[app.JobID(id)])
			}
		}
		if len(b.queue) > 0 {
			t.Fatalf("seed %d: %d jobs did not start", seed, len(b.queue))
		}
	}
}

// positions returns the position of each job in the queue.
func positions(b *board) map[app.JobID]int {
	var lines []Line
	spots := map[app.JobID]Spot{}
	b.queue.visit(func(w app.Waiting) app.Visit {
		n := len(lines) - 1
		if n < 0 || lines[n].User != userOf(w) || lines[n].Priority != w.Priority {
			lines = append(lines, Line{User: userOf(w), Priority: w.Priority, Head: w.ID})
			n++
		}
		spots[w.ID] = Spot{n, lines[n].Count}
		lines[n].Count++
		return app.NextJob
	})
	reserved, ok := spots[b.turns.Reserved(b.now)]
	if !ok {
		reserved = NoSpot
	}
	order := b.turns.Order(lines, reserved)
	all := map[app.JobID]int{}
	for id, s := range spots {
		all[id] = order.Position(s)
	}
	return all
}

func TestCloneSharesNothing(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2, GPUs: []string{"0"}})
	b.add("ann", "a", cpus(1))
	c := b.turns.Clone()
	b.deep("a")
	if len(c.running) != 0 || len(c.started) != 0 || c.slots.used != cpus(0) {
		t.Errorf("the copy has %+v", c)
	}
}

func TestReasonsNameWhatBlocks(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 2, MemoryBytes: 4 * gib, GPUs: []string{"0"}})
	b.add("ann", "a0", cpus(1))
	b.deep("a0")
	b.add("bob", "b0", cpus(1))
	b.add("bob", "b1", cpus(1))
	b.add("cy", "c0", cpus(1))
	b.add("dee", "d0", cpus(2))
	d := b.deep("b0")
	for id, want := range map[app.JobID]eta.Reason{
		"b1": {Text: "waiting for its turn", By: eta.BatchOrder},
		"c0": {Text: "waiting for its turn", By: eta.UserLimit},
		"d0": {Text: "waiting for 2 CPUs", By: eta.CPU},
	} {
		if got := d.Reasons[id]; got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
	for want, lack := range map[eta.Blocker]placement.Resources{
		eta.GPU:    {GPUs: 1, CPUs: 9, MemoryBytes: 1},
		eta.CPU:    {CPUs: 9, MemoryBytes: 1},
		eta.Memory: {MemoryBytes: 1},
	} {
		must.Equal(t, fmt.Sprintf("blocker of a job missing %+v", lack), blocker(lack), want)
	}
}
