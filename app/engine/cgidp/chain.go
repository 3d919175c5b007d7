package cgidp

import (
	"os"
	"slices"
	"sync"
	"time"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
)

// chain is the simulation of one sequence: its replicas and their sums.
type chain struct {
	*system

	mu       sync.Mutex
	started  time.Time     // when this process began a replica; zero before
	wall     time.Duration // from the first start of a replica to the last end, without pauses
	replicas []*replica    // nil until started
	merged   int           // number of replicas whose pairs are in total, always the first ones
	total    *md.PairSums

	saving sync.Mutex // held while files are written
	final  *summary   // nil until all replicas are finished
}

func newChain(s *Settings, index int, dir string) *chain {
	return &chain{system: newSystem(s, index, dir), replicas: make([]*replica, s.Replicas)}
}

// begin returns a replica that is ready to run: a new one, or that of a
// checkpoint.
func (c *chain) begin(number int) (*replica, error) {
	if r := c.replica(number); r != nil {
		return r, nil
	}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return nil, err
	}
	r := newReplica(c.system, number)
	if err := r.start(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total == nil {
		c.total = md.NewPairSums(c.model.Size())
	}
	c.replicas[number-1] = r
	return r, nil
}

// replica is nil if it has not begun. The first call starts the clock.
func (c *chain) replica(number int) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started.IsZero() {
		c.started = time.Now().Add(-c.wall)
	}
	return c.replicas[number-1]
}

// elapsed needs the lock.
func (c *chain) elapsed() time.Duration {
	if c.started.IsZero() {
		return c.wall
	}
	return time.Since(c.started)
}

// pending returns the numbers of the replicas that are not finished.
func (c *chain) pending() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var numbers []int
	for k, r := range c.replicas {
		if r == nil || !r.finished() {
			numbers = append(numbers, k+1)
		}
	}
	return numbers
}

// end closes a replica and reports whether that completed the chain.
func (c *chain) end(r *replica) (completed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.elapsed()
	before := c.merged
	c.mergeFinished()
	return before < c.merged && c.merged == len(c.replicas), r.trajectory.Close()
}

// mergeFinished adds up the pairs of finished replicas. Whichever ends first, it
// adds them in the order of their numbers, since the order changes the last digits
// of the sum. It needs the lock.
func (c *chain) mergeFinished() {
	for c.merged < len(c.replicas) {
		next := c.replicas[c.merged]
		if next == nil || !next.finished() {
			break
		}
		c.total.Merge(next.pairs)
		next.pairs = nil
		c.merged++
	}
}

// complete reports whether all replicas are finished.
func (c *chain) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.merged == len(c.replicas)
}

// begun returns the replicas that have begun, in order.
func (c *chain) begun() []*replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.replicas), func(r *replica) bool { return r == nil })
}

// archive stores or restores all replicas. It needs the lock.
func (c *chain) archive(a *store.Archive) {
	a.Duration(&c.wall)
	merged := int64(c.merged)
	if a.Integer(&merged); a.Reading() {
		c.merged = int(merged)
	}
	c.total.Archive(a)
	for k := range c.replicas {
		begun := c.replicas[k] != nil
		a.Flag(&begun)
		if !begun {
			continue
		}
		if a.Reading() {
			c.replicas[k] = newReplica(c.system, k+1)
		}
		c.archiveReplica(a, k)
	}
}

func (c *chain) archiveReplica(a *store.Archive, index int) {
	r := c.replicas[index]
	r.Lock()
	defer r.Unlock()
	r.archive(a)
	if index >= c.merged {
		r.pairs.Archive(a)
	} else if a.Reading() {
		r.pairs = nil
	}
}
