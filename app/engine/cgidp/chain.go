package cgidp

import (
	"path/filepath"
	"sync"

	"molrun/app/engine/md"
	"molrun/app/engine/run"
)

// chain is the simulation of one sequence: its replicas and their sums.
type chain struct {
	run.Part[*replica]
	system *system

	mu    sync.Mutex
	total *md.PairSums // pairs of finished replicas; nil before the first replica starts and after the last has finished

	final *summary // nil until all replicas have finished
}

func newChain(s *Settings, index int, dir string) *chain {
	y, q := newSystem(s, index), &s.Sequences[index]
	c := &chain{system: y, Part: run.Part[*replica]{
		Name: q.Name, Folder: filepath.Join(dir, q.Name),
		Count: s.Replicas, Steps: q.Steps, Cost: q.cost(), Hash: y.settingsHash(),
	}}
	c.System = c
	return c
}

// New, like the methods below, implements run.System.
func (c *chain) New(number int) *replica {
	if c.total == nil {
		c.total = md.NewPairSums(c.system.model.Size())
	}
	return newReplica(c.system, number, c.Folder)
}

// Gather adds up the pairs of finished replicas. It adds them in order of replica number,
// not of completion, because the order affects the last digits of the sum.
func (c *chain) Gather(begun []*replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range begun {
		if r.Reached() < c.Steps {
			break
		}
		if r.pairs != nil {
			c.total.Merge(r.pairs)
			r.pairs = nil
		}
	}
}

func (c *chain) Archive(a *md.Archive) { c.total.Archive(a) }

func (c *chain) Reset() { c.total = nil }

func (c *chain) Write(replicas []*replica, complete bool) error {
	res := c.results(replicas, complete)
	s, err := c.writeFiles(res)
	if complete {
		c.final = s
	}
	return err
}
