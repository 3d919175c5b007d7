package runner

import (
	"fmt"
	"strings"

	"molrun/app"
	"molrun/app/placement"
	"molrun/app/unit"
)

// slots is the room of one executor: what it has and what is taken of it.
type slots struct {
	capacity app.Capacity
	bounded  bool // false: the executor queues by itself, anything fits
	used     placement.Resources
	leased   map[string]int // by device; more than one only where a restart found it so
}

func newSlots(e app.Executor) slots {
	capacity, bounded := e.Capacity()
	return slots{capacity: capacity, bounded: bounded, leased: map[string]int{}}
}

// total gives the whole room.
func (s *slots) total() placement.Resources {
	return placement.Resources{
		CPUs:        s.capacity.CPUs,
		MemoryBytes: s.capacity.MemoryBytes,
		GPUs:        len(s.capacity.GPUs),
	}
}

// free gives what nobody holds.
func (s *slots) free() placement.Resources { return minus(s.total(), s.used) }

// lacks gives those needs for which there is no room once kept is left alone.
// A job that needs none of a resource is never held up by it, so a shortage of
// GPUs does not stop jobs that only compute on CPUs.
func (s *slots) lacks(needs, kept placement.Resources) placement.Resources {
	if !s.bounded {
		return placement.Resources{}
	}
	return short(minus(s.free(), kept), needs)
}

// never gives those needs that the whole executor could not meet.
func (s *slots) never(needs placement.Resources) placement.Resources {
	if !s.bounded {
		return placement.Resources{}
	}
	return short(s.total(), needs)
}

// lease takes room for a job that fits and names its devices.
func (s *slots) lease(needs placement.Resources) []string {
	var gpus []string
	for _, device := range s.capacity.GPUs {
		if len(gpus) < needs.GPUs && s.leased[device] == 0 {
			gpus = append(gpus, device)
		}
	}
	s.hold(needs, gpus)
	return gpus
}

// hold takes the room of a job that has its devices already.
func (s *slots) hold(needs placement.Resources, gpus []string) {
	s.used = plus(s.used, needs)
	for _, device := range gpus {
		s.leased[device]++
	}
}

// release gives back what lease or hold took.
func (s *slots) release(needs placement.Resources, gpus []string) {
	s.used = minus(s.used, needs)
	for _, device := range gpus {
		if s.leased[device]--; s.leased[device] == 0 {
			delete(s.leased, device)
		}
	}
}

// short gives those needs that room does not hold.
func short(room, needs placement.Resources) placement.Resources {
	var lack placement.Resources
	if needs.CPUs > max(room.CPUs, 0) {
		lack.CPUs = needs.CPUs
	}
	if needs.MemoryBytes > max(room.MemoryBytes, 0) {
		lack.MemoryBytes = needs.MemoryBytes
	}
	if needs.GPUs > max(room.GPUs, 0) {
		lack.GPUs = needs.GPUs
	}
	return lack
}

func plus(a, b placement.Resources) placement.Resources {
	return placement.Resources{
		CPUs:        a.CPUs + b.CPUs,
		MemoryBytes: a.MemoryBytes + b.MemoryBytes,
		GPUs:        a.GPUs + b.GPUs,
	}
}

func minus(a, b placement.Resources) placement.Resources {
	return placement.Resources{
		CPUs:        a.CPUs - b.CPUs,
		MemoryBytes: a.MemoryBytes - b.MemoryBytes,
		GPUs:        a.GPUs - b.GPUs,
	}
}

// amounts writes resources for people: "2 GPUs, 1 CPU and 3.5 GiB of memory".
func amounts(r placement.Resources) string {
	var parts []string
	if r.GPUs > 0 {
		parts = append(parts, counted(r.GPUs, "GPU"))
	}
	if r.CPUs > 0 {
		parts = append(parts, counted(r.CPUs, "CPU"))
	}
	if r.MemoryBytes > 0 {
		parts = append(parts, unit.Bytes(r.MemoryBytes).String()+" of memory")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
