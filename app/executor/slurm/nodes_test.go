package slurm

import (
	"fmt"
	"testing"
	"time"

	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

func TestLargestLeavesMarginsForTheTaskItself(t *testing.T) {
	e := &Executor{nodes: &nodes{margin: Options{Grace: 10 * time.Second}.margin()}}
	if _, known := e.Largest(placement.Placement{}); known {
		t.Error("a node is known before the first query")
	}
	known := map[string]placement.Node{
		"":        {CPUs: 16, MemoryBytes: 64000 << 20, GPUs: 2, Seconds: 7 * 24 * 3600},
		"big":     {CPUs: 16, MemoryBytes: 64000 << 20, GPUs: 2, Seconds: 9000},
		"forever": {CPUs: 4, MemoryBytes: 4000 << 20, GPUs: 2},
		"short":   {CPUs: 4, MemoryBytes: 4000 << 20, Seconds: 60},
		"mixed":   {CPUs: 64, MemoryBytes: 512000 << 20, GPUs: 6, Seconds: 1800},
	}
	e.nodes.set(known, time.Now())
	for partition, want := range map[string]placement.Node{
		"big":         {CPUs: 16, MemoryBytes: 64000<<20 - memoryMargin, GPUs: 2, Seconds: 9000 - 70},
		"big,mixed":   {CPUs: 64, MemoryBytes: 512000<<20 - memoryMargin, GPUs: 6, Seconds: 9000 - 70},
		"short":       {CPUs: 4, MemoryBytes: 4000<<20 - memoryMargin, Seconds: 30},
		"big,forever": {CPUs: 16, MemoryBytes: 64000<<20 - memoryMargin, GPUs: 2},
	} {
		got, known := e.Largest(placement.Placement{Partition: partition})
		must.Equal(t, partition+": known", known, true)
		must.Equal(t, partition, got, want)
	}
	if _, known := e.Largest(placement.Placement{Partition: "big,other"}); known {
		t.Error("a node is known in a partition that sinfo does not list")
	}
	for partition, want := range map[string]string{"": "", "big": "", "big,other": "no partition other"} {
		must.Equal(t, fmt.Sprintf("of %q", partition), e.Missing(placement.Placement{Partition: partition}), want)
	}
	e.nodes.set(known, time.Now().Add(-2*nodesTTL))
	must.Equal(t, "by a stale answer of the controller", e.Missing(placement.Placement{Partition: "other"}), "")
	if _, known := e.Largest(placement.Placement{}); known {
		t.Error("a stale answer of the controller is still used")
	}
}
