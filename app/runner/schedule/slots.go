package schedule

import (
	"maps"
	"slices"

	"molrun/app"
	"molrun/app/algorithm/placement"
)

// slots is what an executor has and how much of it is in use.
type slots struct {
	capacity app.Capacity
	bounded  bool // false: the executor queues by itself, anything fits
	used     placement.Resources
	leased   map[string]int // jobs by GPU; more than one only if a restart found them so
	freeGPUs int            // GPUs that can be given away and that no job has
	pinned   map[int]int    // likewise by CPU
}

func newSlots(capacity app.Capacity, bounded bool) slots {
	s := slots{capacity: capacity, bounded: bounded, leased: map[string]int{}, pinned: map[int]int{}}
	s.countGPUs()
	return s
}

// countGPUs counts the free GPUs. A job that has one which is faulty takes none of the others.
func (s *slots) countGPUs() {
	s.freeGPUs = 0
	for _, gpu := range s.capacity.GPUs {
		if s.leased[gpu] == 0 {
			s.freeGPUs++
		}
	}
}

func (s *slots) clone() slots {
	c := *s
	c.leased, c.pinned = maps.Clone(s.leased), maps.Clone(s.pinned)
	return c
}

// total returns what the executor has, its faulty GPUs included.
func (s *slots) total() placement.Resources {
	return placement.Resources{
		CPUs:        s.capacity.CPUs,
		MemoryBytes: s.capacity.MemoryBytes,
		GPUs:        s.capacity.ExpectedGPUs(),
	}
}

// Used returns what running jobs use.
func (t *FairShare) Used() placement.Resources { return t.slots.used }

// free returns what no job uses.
func (s *slots) free() placement.Resources {
	free := minus(s.total(), s.used)
	free.GPUs = s.freeGPUs
	return free
}

// lacks returns the needs that can't be met now without touching what is
// reserved. A job that needs none of a resource is never held up by it, so a
// shortage of GPUs does not stop jobs that only compute on CPUs.
func (s *slots) lacks(needs, reserved placement.Resources) placement.Resources {
	if !s.bounded {
		return placement.Resources{}
	}
	return short(minus(s.free(), reserved), needs)
}

// never returns those needs that the whole executor could not meet. Faulty GPUs can be
// repaired.
func (s *slots) never(needs placement.Resources) placement.Resources {
	if !s.bounded {
		return placement.Resources{}
	}
	lack := short(s.total(), needs)
	if s.capacity.GPUsUnknown {
		lack.GPUs = 0
	}
	return lack
}

// lacksGPUs reports whether a job needs more GPUs than can be given away, even if no other
// job had one.
func (s *slots) lacksGPUs(needs placement.Resources) bool {
	return s.bounded && needs.GPUs > len(s.capacity.GPUs)
}

// lease takes a slot for a job that fits and returns its devices.
func (s *slots) lease(needs placement.Resources) placement.Devices {
	var gpus []string
	for _, device := range s.capacity.GPUs {
		if len(gpus) < needs.GPUs && s.leased[device] == 0 {
			gpus = append(gpus, device)
		}
	}
	devices := placement.Devices{GPUs: gpus, Cards: s.cards(gpus), CPUs: s.freeCPUs(needs.CPUs)}
	s.take(needs, devices)
	return devices
}

// cards returns the cards of GPUs, none if no GPU is an instance of one.
func (s *slots) cards(gpus []string) (cards []string) {
	instances := false
	for _, gpu := range gpus {
		card, instance := s.capacity.Cards[gpu]
		if !instance {
			card = gpu
		}
		instances = instances || instance
		cards = append(cards, card)
	}
	if !instances {
		return nil
	}
	return cards
}

// freeCPUs chooses CPUs that no job is pinned to, of cores that are used least. If there are
// too few, as when the service was restarted with others, the job is not pinned.
func (s *slots) freeCPUs(n int) []int {
	free := make([][]int, len(s.capacity.Cores))
	for i, core := range s.capacity.Cores {
		free[i] = slices.DeleteFunc(slices.Clone(core), func(cpu int) bool { return s.pinned[cpu] > 0 })
	}
	slices.SortStableFunc(free, func(x, y []int) int { return len(y) - len(x) })
	chosen := slices.Concat(free...)
	if n == 0 || len(chosen) < n {
		return nil
	}
	return slices.Sorted(slices.Values(chosen[:n]))
}

// take takes the slot of a job that already has its devices.
func (s *slots) take(needs placement.Resources, devices placement.Devices) {
	s.used = plus(s.used, needs)
	for _, gpu := range devices.GPUs {
		s.leased[gpu]++
	}
	if len(devices.GPUs) > 0 {
		s.countGPUs()
	}
	for _, cpu := range devices.CPUs {
		s.pinned[cpu]++
	}
}

// release undoes lease or take.
func (s *slots) release(needs placement.Resources, devices placement.Devices) {
	s.used = minus(s.used, needs)
	for _, gpu := range devices.GPUs {
		decrement(s.leased, gpu)
	}
	if len(devices.GPUs) > 0 {
		s.countGPUs()
	}
	for _, cpu := range devices.CPUs {
		decrement(s.pinned, cpu)
	}
}

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}
