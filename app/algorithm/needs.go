package algorithm

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"molrun/app/algorithm/expression"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// Needs returns the resources of a job with these checked settings. File metadata that is
// not yet known counts as 0. Each error names the setting that requests something
// impossible.
func (a *File) Needs(settings *strictjson.Value, facts Facts) (placement.Resources, []fault.Field) {
	values, faults := a.relations.values(settings.Members, facts, 0.0)
	take := func(r resource, lowest, highest int64) int64 {
		n, msg := r.amountOf(settings, lowest, highest)
		if r.formula != nil {
			lowest = max(lowest, r.minAmount(a.Parameters))
			n, msg = r.computed(values, lowest, highest)
		}
		if msg != "" {
			faults = append(faults, fault.Field{Loc: r.settingPath(), Msg: msg, Type: "value"})
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

// Runtime returns the run time limit, in seconds, of a job with these checked settings
// that does not request one. It is the maximum if required file metadata is not yet
// known.
func (a *File) Runtime(settings *strictjson.Value, facts Facts) (seconds int64, faults []fault.Field) {
	most := int64(a.MaxRuntime.Seconds())
	if a.runtime == nil {
		return most, nil
	}
	values, faults := a.relations.values(settings.Members, facts, nil)
	if len(faults) > 0 || a.runtime.Lacks(values) {
		return most, faults
	}
	got, err := a.runtime.Value(values)
	n, isNumber := got.(float64)
	if err != nil || !isNumber {
		return 0, []fault.Field{{Loc: firstOf(a.runtime), Type: "value", Msg: fmt.Sprintf("determines the run time limit of the job, which can't be computed (%s): %v", a.runtime.Text, err)}}
	}
	return int64(math.Ceil(min(max(n, 1), float64(most)))), nil
}

// ExceededNeeds returns an error for each need that a node does not meet. where completes the
// message "the job would need more than", such as "this server has".
func (a *File) ExceededNeeds(needs placement.Resources, node placement.Node, where string) (faults []fault.Field) {
	r := a.resources
	if needs.CPUs > node.CPUs {
		faults = append(faults, r.cpus.exceeded(where, fmt.Sprintf("%d CPUs of %d", needs.CPUs, node.CPUs))...)
	}
	if needs.MemoryBytes > node.MemoryBytes {
		faults = append(faults, r.memory.exceeded(where, fmt.Sprintf("%s of memory of %s", unit.Bytes(needs.MemoryBytes), unit.Bytes(node.MemoryBytes)))...)
	}
	if needs.GPUs > node.GPUs {
		faults = append(faults, r.gpus.exceeded(where, fmt.Sprintf("%d GPUs of %d", needs.GPUs, node.GPUs))...)
	}
	return faults
}

// UsesFacts reports whether file metadata affects a job.
func (a *File) UsesFacts() bool {
	all := []*expression.Expression{a.resources.cpus.formula, a.resources.memory.formula, a.resources.gpus.formula, a.runtime}
	if a.size != nil && slices.ContainsFunc(a.size.Facts, func(f expression.Fact) bool { return f.Name != factBytes && f.Name != factFiles }) {
		all = append(all, a.size) // file sizes are known without reading files
	}
	all = append(all, a.conditions...)
	for _, d := range a.relations.derived {
		all = append(all, d.value)
	}
	for _, r := range slices.Concat(a.relations.rules, a.relations.warnings) {
		all = append(all, r.condition)
	}
	return slices.ContainsFunc(all, func(e *expression.Expression) bool { return e != nil && len(e.Facts) > 0 })
}

// StoredFacts returns the file metadata that a job stores until it runs, or nil if it
// uses none.
func (a *File) StoredFacts(facts Facts) Facts {
	if !a.UsesFacts() {
		return nil
	}
	return facts
}

// SettingsWarnings returns warnings about a job with these normalized settings and file
// metadata. Each is a path to a setting and a message that continues a sentence starting
// with its name.
func (a *File) SettingsWarnings(normalized json.RawMessage, facts Facts) []fault.Field {
	if len(a.relations.warnings) == 0 {
		return nil
	}
	settings, err := strictjson.Parse(normalized)
	if err != nil {
		return nil
	}
	return a.relations.warn(settings.Members, facts)
}

// factRules returns the errors that depend on file metadata.
func (a *File) factRules(settings *strictjson.Value, facts Facts) []fault.Field {
	if !a.UsesFacts() {
		return nil
	}
	return a.relations.checkValues(settings.Members, facts)
}
