package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/job/quota"
	"molrun/app/test/must"
)

func gpus(n int) placement.Resources { return placement.Resources{CPUs: 1, GPUs: n} }

func faulty(names ...string) (all []app.FaultyGPU) {
	for _, name := range names {
		all = append(all, app.FaultyGPU{Name: name, Fault: app.GPULost, Text: "is lost"})
	}
	return all
}

func TestJobsWaitForFaultyGPUs(t *testing.T) {
	c := app.Capacity{CPUs: 8, GPUs: []string{"a", "b"}}
	b := newBoard(t, c)
	b.turns.SetGPUs(app.Capacity{GPUs: []string{"a"}, FaultyGPUs: faulty("b")})
	b.add("ann", "1", gpus(2))
	b.add("ann", "2", gpus(1))
	b.add("ann", "3", gpus(3))
	d := b.deep("2")
	must.Equal(t, "why two wait", d.Reasons["1"], eta.Reason{Text: "waiting for 2 GPUs: 1 of 2 can be used now; b is lost", By: eta.GPU})
	if len(d.Impossible) != 1 || d.Impossible[0].ID != "3" {
		t.Errorf("impossible: %+v, want the job for three GPUs", d.Impossible)
	}
	b.end("2")
	b.turns.SetGPUs(c)
	b.queue = b.queue[:1]
	b.deep("1")
}

func TestGPUsAreNotKnownYet(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUsUnknown: true})
	b.add("ann", "1", gpus(1))
	d := b.deep()
	must.Equal(t, "why it waits", d.Reasons["1"].Text, "waiting for 1 GPU: GPU detection has not finished yet")
	b.turns.SetGPUs(app.Capacity{FaultyGPUs: []app.FaultyGPU{{Name: "a", Fault: app.GPUUndivided}}})
	if d := b.deep(); len(d.Impossible) != 1 {
		t.Errorf("%+v, want a refusal: a card without instances is no GPU", d)
	}
}

// TestFaultyGPUsReserveNothing queues a job that needs every GPU while one of them is
// lost.
func TestFaultyGPUsReserveNothing(t *testing.T) {
	c := app.Capacity{CPUs: 8, GPUs: []string{"a", "b"}}
	b := newBoard(t, c)
	b.add("ann", "1", gpus(1))
	b.deep("1")
	b.add("ann", "2", gpus(2))
	b.add("ann", "3", gpus(1))
	b.deep("3")
	b.now = b.now.Add(time.Hour)
	b.end("1", "3")
	b.turns.SetGPUs(app.Capacity{GPUs: []string{"a"}, FaultyGPUs: faulty("b")})
	b.add("ann", "4", gpus(1))
	b.deep("4")
	b.end("4")
	b.add("ann", "5", gpus(1))
	b.turns.SetGPUs(c)
	b.deep("2")
}

// TestFaultyGPUsKeepNoLimit has a limit hold up a job that needs every GPU while one of
// them is lost.
func TestFaultyGPUsKeepNoLimit(t *testing.T) {
	c := app.Capacity{CPUs: 8, GPUs: []string{"a", "b", "c"}}
	b := newBoard(t, c).limitedTo(quota.Quota{GPUs: 3}, quota.Quota{})
	b.add("ann", "1", gpus(1))
	b.deep("1")
	b.add("ann", "2", gpus(3))
	b.deep()
	b.now = b.now.Add(time.Hour)
	b.turns.SetGPUs(app.Capacity{GPUs: []string{"a", "b"}, FaultyGPUs: faulty("c")})
	b.add("ann", "3", gpus(1))
	b.deep("3")
	b.end("1", "3")
	b.turns.SetGPUs(c)
	b.deep("2")
}

func TestLeasedInstancesNameTheirCards(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"MIG-1", "GPU-b", "GPU-c"}, Cards: map[string]string{"MIG-1": "GPU-a"}})
	b.add("ann", "1", gpus(2))
	b.add("ann", "2", gpus(1))
	d := b.deep("1", "2")
	must.Equal(t, "cards", fmt.Sprint(d.Start[0].GPUs, d.Start[0].Cards, d.Start[1].Cards), "[MIG-1 GPU-b] [GPU-a GPU-b] []")
}

// cards is a machine whose GPUs fail, return and are added.
type cards struct {
	*board
	r       *rand.Rand
	healthy map[string]bool
	jobs    int
}

// TestGPUsComeAndGo runs 10,000 random schedules of cards that fail, return and are
// added.
func TestGPUsComeAndGo(t *testing.T) {
	schedules := 10_000
	if testing.Short() {
		schedules = 1000
	}
	for seed := range schedules {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		m := &cards{r: r, healthy: map[string]bool{}}
		for n := range 1 + r.IntN(8) {
			m.healthy[fmt.Sprint("card", n)] = r.IntN(4) > 0
		}
		m.board = newBoard(t, app.Capacity{CPUs: 64})
		m.set()
		for range 25 {
			m.step()
		}
		if t.Failed() {
			t.Fatalf("in the schedule %d", seed)
		}
	}
}

// set updates the scheduler with the healthy cards.
func (m *cards) set() {
	var c app.Capacity
	for _, name := range slices.Sorted(maps.Keys(m.healthy)) {
		if m.healthy[name] {
			c.GPUs = append(c.GPUs, name)
		} else {
			c.FaultyGPUs = append(c.FaultyGPUs, faulty(name)...)
		}
	}
	m.turns.SetGPUs(c)
}

func (m *cards) step() {
	names := slices.Sorted(maps.Keys(m.healthy))
	switch m.r.IntN(8) {
	case 0: // a card fails; its job ends, or may continue if the card is not lost
		name := names[m.r.IntN(len(names))]
		m.healthy[name] = false
		m.set()
		for _, id := range slices.Sorted(maps.Keys(m.runs)) {
			if slices.Contains(m.runs[id].GPUs, name) && m.r.IntN(2) == 0 {
				m.end(string(id))
			}
		}
	case 1, 2:
		m.healthy[names[m.r.IntN(len(names))]] = true
		m.set()
	case 3:
		if len(names) < 8 {
			m.healthy[fmt.Sprint("card", len(names))] = true
			m.set()
		}
	case 4:
		for _, id := range slices.Sorted(maps.Keys(m.runs)) {
			if m.r.IntN(2) == 0 {
				m.end(string(id))
			}
		}
	case 5:
		m.now = m.now.Add(time.Duration(m.r.IntN(9)) * time.Minute)
	default:
		m.jobs++
		m.addUrgent([]string{"ann", "bob"}[m.r.IntN(2)], fmt.Sprintf("j%03d", m.jobs), m.r.IntN(2), gpus(m.r.IntN(len(names)+1)))
	}
	m.round()
}

// round runs a round and checks it. The board checks that no card is leased twice.
func (m *cards) round() {
	held := m.turns.HeldGPUs()
	d, _ := m.play(true)
	for _, s := range d.Start {
		for _, name := range s.GPUs {
			if !m.healthy[name] || slices.Contains(held, name) {
				m.t.Errorf("job %s starts on %s, healthy %v, held %v", s.ID, name, m.healthy, held)
			}
		}
	}
	if len(d.Impossible) > 0 {
		m.t.Errorf("refused %+v, though cards are only faulty: %v", d.Impossible, m.healthy)
	}
	m.checkWaiting(d)
}

// checkWaiting fails if a waiting job could run, or has a false reason.
func (m *cards) checkWaiting(d Decision) {
	all, free := 0, 0
	held := m.turns.HeldGPUs()
	for name, healthy := range m.healthy {
		if healthy {
			all++
			if !slices.Contains(held, name) {
				free++
			}
		}
	}
	kept, priority := 0, -1
	reserved := m.turns.Reserved(m.now)
	for _, w := range m.queue {
		if w.ID == reserved {
			kept, priority = w.Needs.GPUs, w.Priority
		}
	}
	if kept > all {
		m.t.Errorf("%d GPUs are reserved of %d that are healthy", kept, all)
	}
	for _, w := range m.queue {
		left := free
		if w.ID != reserved && w.Priority <= priority {
			left -= kept
		}
		if w.Needs.GPUs <= left || w.Needs.GPUs == 0 && kept == 0 {
			m.t.Errorf("job %s waits for %d GPUs of %d that are free", w.ID, w.Needs.GPUs, left)
		}
		if says := strings.Contains(d.Reasons[w.ID].Text, "can be used now"); says != (w.Needs.GPUs > all) {
			m.t.Errorf("job %s waits for %d GPUs of %d that are healthy: %q", w.ID, w.Needs.GPUs, all, d.Reasons[w.ID].Text)
		}
	}
}
