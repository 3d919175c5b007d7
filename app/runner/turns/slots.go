package turns

import (
	"maps"

	"molrun/app"
	"molrun/app/placement"
)

// slots is what an executor has and how much of it is in use.
type slots struct {
	capacity app.Capacity
	bounded  bool // false: the executor queues by itself, anything fits
	used     placement.Resources
	leased   map[string]int // jobs by device; more than one only if a restart found them so
}

func newSlots(capacity app.Capacity, bounded bool) slots {
	return slots{capacity: capacity, bounded: bounded, leased: map[string]int{}}
}

func (s *slots) clone() slots {
	c := *s
	c.leased = maps.Clone(s.leased)
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

// free returns what no job uses.
func (s *slots) free() placement.Resources { return minus(s.total(), s.used) }

// lacks returns those needs that can't be met now without touching what is
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
func (s *slots) lease(needs placement.Resources) []string {
	var gpus []string
	for _, device := range s.capacity.GPUs {
		if len(gpus) < needs.GPUs && s.leased[device] == 0 {
			gpus = append(gpus, device)
		}
	}
	s.take(needs, gpus)
	return gpus
}

// take takes the slot of a job that already has its devices.
func (s *slots) take(needs placement.Resources, gpus []string) {
	s.used = plus(s.used, needs)
	for _, device := range gpus {
		s.leased[device]++
	}
}

// release undoes lease or take.
func (s *slots) release(needs placement.Resources, gpus []string) {
	s.used = minus(s.used, needs)
	for _, device := range gpus {
		if s.leased[device]--; s.leased[device] == 0 {
			delete(s.leased, device)
		}
	}
}
