package algorithm

import (
	"encoding/json"
	"fmt"

	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/strictjson"
	"molrun/app/unit"
)

// Needs returns the resources of a job with these normalized settings. A fault
// names the setting that asks for something impossible.
func (a *File) Needs(normalized json.RawMessage) (placement.Resources, []fault.Field) {
	settings, err := strictjson.Parse(normalized)
	if err != nil || settings.Kind != strictjson.Object {
		return placement.Resources{}, []fault.Field{{Loc: []any{}, Msg: "settings must be an object", Type: "type"}}
	}
	var faults []fault.Field
	take := func(r resource, lowest, highest int64) int64 {
		n, msg := r.of(settings, lowest, highest)
		if msg != "" {
			faults = append(faults, fault.Field{Loc: []any{r.setting}, Msg: msg, Type: "value"})
		}
		return n
	}
	needs := placement.Resources{
		CPUs:        int(take(a.resources.cpus, 1, maxCPUs)),
		MemoryBytes: take(a.resources.memory, 0, maxMemory),
		GPUs:        int(take(a.resources.gpus, 0, maxGPUs)),
	}
	return needs, faults
}

// Beyond returns a fault for each need that a node does not meet; where names the
// node in the sentence.
func (a *File) Beyond(needs placement.Resources, node placement.Node, where string) (faults []fault.Field) {
	r := a.resources
	if needs.CPUs > node.CPUs {
		faults = append(faults, r.cpus.tooMuch(where, fmt.Sprintf("%d CPUs of %d", needs.CPUs, node.CPUs)))
	}
	if needs.MemoryBytes > node.MemoryBytes {
		faults = append(faults, r.memory.tooMuch(where, fmt.Sprintf("%s of memory of %s", unit.Bytes(needs.MemoryBytes), unit.Bytes(node.MemoryBytes))))
	}
	if needs.GPUs > node.GPUs {
		faults = append(faults, r.gpus.tooMuch(where, fmt.Sprintf("%d GPUs of %d", needs.GPUs, node.GPUs)))
	}
	return faults
}
