package runner

import (
	"sync"

	"molrun/app/runner/schedule"
)

// maxWaitingPilots is how many pilots of one kind may wait in a cluster's queue, or as many as
// run: so their number doubles as long as the cluster has capacity for them.
const maxWaitingPilots = 8

// pilotKind is what pilots have in common whose rows could change places: the executor, the
// user, and the class of comparable runs.
type pilotKind struct {
	Executor string
	User     schedule.User
	Class    string
}

// pilotCounts keeps count of the pilots of a runner, by name. On a cluster, pilots wait in
// its queue. Until these run, further ones of a kind gain nothing: their rows are better left to
// those that run first. Its methods may be called concurrently.
type pilotCounts struct {
	mu     sync.Mutex
	pilots map[string]*countedPilot
	kinds  map[pilotKind]*kindCount
}

type countedPilot struct {
	kind pilotKind
	runs bool
}

type kindCount struct{ waiting, running int }

// newPilotCounts returns the counts of a runner without pilots.
func newPilotCounts() *pilotCounts {
	return &pilotCounts{pilots: map[string]*countedPilot{}, kinds: map[pilotKind]*kindCount{}}
}

// Add adds a pilot, however many there are.
func (p *pilotCounts) Add(id string, k pilotKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(id, k)
}

// Enter adds a pilot unless too many of its kind wait.
func (p *pilotCounts) Enter(id string, k pilotKind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.kinds[k]; c != nil && c.capacity() <= 0 {
		return false
	}
	p.addLocked(id, k)
	return true
}

func (p *pilotCounts) addLocked(id string, k pilotKind) {
	p.pilots[id] = &countedPilot{kind: k}
	if p.kinds[k] == nil {
		p.kinds[k] = &kindCount{}
	}
	p.kinds[k].waiting++
}

func (c *kindCount) capacity() int { return max(maxWaitingPilots, c.running) - c.waiting }

// Runs notes that a pilot was seen running.
func (p *pilotCounts) Runs(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.pilots[id]; m != nil && !m.runs {
		m.runs = true
		c := p.kinds[m.kind]
		c.waiting--
		c.running++
	}
}

// Remove removes a pilot, if it is there.
func (p *pilotCounts) Remove(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.pilots[id]
	if m == nil {
		return
	}
	delete(p.pilots, id)
	c := p.kinds[m.kind]
	if m.runs {
		c.running--
	} else {
		c.waiting--
	}
	if *c == (kindCount{}) {
		delete(p.kinds, m.kind)
	}
}

// Has reports whether there is a pilot of that name.
func (p *pilotCounts) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pilots[id] != nil
}

// Capacity returns how many more pilots of a kind may be added. It is false if the kind has
// none, as that of jobs which take long.
func (p *pilotCounts) Capacity(k pilotKind) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.kinds[k]
	if c == nil {
		return 0, false
	}
	return c.capacity(), true
}
