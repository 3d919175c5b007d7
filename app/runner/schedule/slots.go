package schedule

import (
	"maps"
	"slices"

	"molrun/app"
	"molrun/app/algorithm/placement"
)

// slots holds the resources of an executor and their use.
type slots struct {
	capacity app.Capacity
	bounded  bool // false if the executor has its own queue: anything fits
	used     placement.Resources
	leased   map[string]int // number of jobs by GPU; more than 1 is possible only after a restart
	freeGPUs int            // assignable GPUs that no job holds
	pinned   map[int]int    // number of jobs by CPU, as for leased
}

func newSlots(capacity app.Capacity, bounded bool) slots {
	s := slots{capacity: capacity, bounded: bounded, leased: map[string]int{}, pinned: map[int]int{}}
	s.countGPUs()
	return s
}

// countGPUs counts the free GPUs. A job that holds a faulty GPU does not reduce the
// number of the others.
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

// total returns the executor's resources, including faulty GPUs.
func (s *slots) total() placement.Resources {
	return placement.Resources{
		CPUs:        s.capacity.CPUs,
		MemoryBytes: s.capacity.MemoryBytes,
		GPUs:        s.capacity.ExpectedGPUs(),
	}
}

// Used returns the resources in use by running jobs.
func (t *FairShare) Used() placement.Resources { return t.slots.used }

// free returns the resources not in use.
func (s *slots) free() placement.Resources {
	free := minus(s.total(), s.used)
	free.GPUs = s.freeGPUs
	return free
}

// lacks returns the needs that can't be met now without touching the reserved resources.
// A job that needs none of a resource is never held up by it, so a shortage of GPUs does
// not stop CPU-only jobs.
func (s *slots) lacks(needs, reserved placement.Resources) placement.Resources {
	if !s.bounded {
		return placement.Resources{}
	}
	return short(minus(s.free(), reserved), needs)
}

// never returns the needs that exceed the whole executor. Faulty GPUs count, because they
// can be repaired.
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

// lacksGPUs reports whether a job needs more GPUs than could be assigned even if no job
// held one.
func (s *slots) lacksGPUs(needs placement.Resources) bool {
	return s.bounded && needs.GPUs > len(s.capacity.GPUs)
}

// lease takes a slot for a job that fits, and returns its devices.
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

// cards returns the cards of GPUs, or none if no GPU is an instance on a card.
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

// freeCPUs selects CPUs that no job is pinned to, from the least used cores. If there are
// too few, as after a restart with different CPUs, the job is not pinned.
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

// take takes the slot for a job that already has its devices.
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
