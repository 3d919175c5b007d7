package schedule

import (
	"strings"

	"molrun/app/algorithm/placement"
	"molrun/app/base/unit"
)

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

// short returns the needs that exceed the free resources.
func short(free, needs placement.Resources) placement.Resources {
	var lack placement.Resources
	if needs.CPUs > max(free.CPUs, 0) {
		lack.CPUs = needs.CPUs
	}
	if needs.MemoryBytes > max(free.MemoryBytes, 0) {
		lack.MemoryBytes = needs.MemoryBytes
	}
	if needs.GPUs > max(free.GPUs, 0) {
		lack.GPUs = needs.GPUs
	}
	return lack
}

// only returns a without the resources that are zero in b.
func only(a, b placement.Resources) placement.Resources {
	if b.CPUs == 0 {
		a.CPUs = 0
	}
	if b.MemoryBytes == 0 {
		a.MemoryBytes = 0
	}
	if b.GPUs == 0 {
		a.GPUs = 0
	}
	return a
}

// amounts formats resources for users: "2 GPUs, 1 CPU and 3.5 GiB of memory".
func amounts(r placement.Resources) string {
	var parts []string
	if r.GPUs > 0 {
		parts = append(parts, unit.Count(r.GPUs, "GPU"))
	}
	if r.CPUs > 0 {
		parts = append(parts, unit.Count(r.CPUs, "CPU"))
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
