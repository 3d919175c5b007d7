package runner

import (
	"sync"

	"molrun/app/runner/schedule"
)

// maxWaitingWorkers is how many workers of one kind can wait in a cluster's queue, or as
// many as are running if that is more: their number doubles as long as the cluster has
// capacity.
const maxWaitingWorkers = 8

// workerKind identifies workers whose jobs are interchangeable: same executor, same user,
// and same class of comparable runs.
type workerKind struct {
	Executor string
	User     schedule.User
	Class    string
}

// workerCounts counts the workers of a runner, by name. On a cluster, workers wait in its
// queue. Until they run, further workers of the same kind bring no benefit: their jobs
// are better left to the workers that start first. Its methods can be called
// concurrently.
type workerCounts struct {
	mu      sync.Mutex
	workers map[string]*countedWorker
	kinds   map[workerKind]*kindCount
}

type countedWorker struct {
	kind workerKind
	runs bool
}

type kindCount struct{ waiting, running int }

func newWorkerCounts() *workerCounts {
	return &workerCounts{workers: map[string]*countedWorker{}, kinds: map[workerKind]*kindCount{}}
}

// Add adds a worker, regardless of how many there are.
func (p *workerCounts) Add(id string, k workerKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(id, k)
}

// Enter adds a worker and returns true, unless too many of its kind wait.
func (p *workerCounts) Enter(id string, k workerKind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.kinds[k]; c != nil && c.capacity() <= 0 {
		return false
	}
	p.addLocked(id, k)
	return true
}

func (p *workerCounts) addLocked(id string, k workerKind) {
	p.workers[id] = &countedWorker{kind: k}
	if p.kinds[k] == nil {
		p.kinds[k] = &kindCount{}
	}
	p.kinds[k].waiting++
}

func (c *kindCount) capacity() int { return max(maxWaitingWorkers, c.running) - c.waiting }

// Runs records that a worker was seen running.
func (p *workerCounts) Runs(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.workers[id]; m != nil && !m.runs {
		m.runs = true
		c := p.kinds[m.kind]
		c.waiting--
		c.running++
	}
}

// Remove removes a worker if it exists.
func (p *workerCounts) Remove(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.workers[id]
	if m == nil {
		return
	}
	delete(p.workers, id)
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

// Has reports whether a worker with that name exists.
func (p *workerCounts) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers[id] != nil
}

// Capacity returns how many more workers of a kind can be added. It returns false if there
// are no workers of the kind, as for long jobs.
func (p *workerCounts) Capacity(k workerKind) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.kinds[k]
	if c == nil {
		return 0, false
	}
	return c.capacity(), true
}
