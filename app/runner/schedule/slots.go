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
	pinned   map[int]int    // likewise by CPU
}

func newSlots(capacity app.Capacity, bounded bool) slots {
	return slots{capacity: capacity, bounded: bounded, leased: map[string]int{}, pinned: map[int]int{}}
}

func (s *slots) clone() slots {
	c := *s
	c.leased, c.pinned = maps.Clone(s.leased), maps.Clone(s.pinned)
	return c
}

// total returns what the executor has.
func (s *slots) total() placement.Resources {
	return placement.Resources{
		CPUs:        s.capacity.CPUs,
		MemoryBytes: s.capacity.MemoryBytes,
		GPUs:        len(s.capacity.GPUs),
	}
}

// Used returns what running jobs use.
func (t *FairShare) Used() placement.Resources { return t.slots.used }

// free returns what no job uses.
func (s *slots) free() placement.Resources { return minus(s.total(), s.used) }

// lacks returns the needs that can't be met now without touching what is
// reserved. A job that needs none of a resource is never held up by it, so a
// shortage of GPUs does not stop jobs that only compute on CPUs.
func (s *slots) lacks(needs, reserved placement.Resources) placement.Resources {
	if !s.bounded {
		return placement.Resources{}
	}
	return short(minus(s.free(), reserved), needs)
}

// never returns those needs that the whole executor could not meet.
func (s *slots) never(needs placement.Resources) placement.Resources {
	if !s.bounded {
		return placement.Resources{}
	}
	return short(s.total(), needs)
}

// lease takes a slot for a job that fits and returns its devices.
func (s *slots) lease(needs placement.Resources) placement.Devices {
	var gpus []string
	for _, device := range s.capacity.GPUs {
		if len(gpus) < needs.GPUs && s.leased[device] == 0 {
			gpus = append(gpus, device)
		}
	}
	devices := placement.Devices{GPUs: gpus, CPUs: s.freeCPUs(needs.CPUs)}
	s.take(needs, devices)
	return devices
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
	for _, cpu := range devices.CPUs {
		decrement(s.pinned, cpu)
	}
}

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}
