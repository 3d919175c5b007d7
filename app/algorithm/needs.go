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

// Needs returns the resources of a job with these checked settings. A fact that is not
// known yet counts as 0. A fault names the setting that asks for something impossible.
func (a *File) Needs(settings *strictjson.Value, facts Facts) (placement.Resources, []fault.Field) {
	values, faults := a.relations.values(settings.Members, facts, 0.0)
	take := func(r resource, lowest, highest int64) int64 {
		n, msg := r.amountOf(settings, lowest, highest)
		if r.formula != nil {
			lowest = max(lowest, r.least(a.Parameters))
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

// Runtime returns how many seconds a job with these checked settings may run that asks for
// no time of its own. It is the most that there is where facts are not known yet.
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
		return 0, []fault.Field{{Loc: firstOf(a.runtime), Type: "value", Msg: fmt.Sprintf("says how long the job may run, which can't be computed (%s): %v", a.runtime.Text, err)}}
	}
	return int64(math.Ceil(min(max(n, 1), float64(most)))), nil
}

// Beyond returns a fault for each need that a node does not meet; where names the
// node in the sentence.
func (a *File) Beyond(needs placement.Resources, node placement.Node, where string) (faults []fault.Field) {
	r := a.resources
	if needs.CPUs > node.CPUs {
		faults = append(faults, r.cpus.tooMuch(where, fmt.Sprintf("%d CPUs of %d", needs.CPUs, node.CPUs))...)
	}
	if needs.MemoryBytes > node.MemoryBytes {
		faults = append(faults, r.memory.tooMuch(where, fmt.Sprintf("%s of memory of %s", unit.Bytes(needs.MemoryBytes), unit.Bytes(node.MemoryBytes)))...)
	}
	if needs.GPUs > node.GPUs {
		faults = append(faults, r.gpus.tooMuch(where, fmt.Sprintf("%d GPUs of %d", needs.GPUs, node.GPUs))...)
	}
	return faults
}

// UsesFacts reports whether what is known of files decides about a job.
func (a *File) UsesFacts() bool {
	all := []*expression.Expression{a.resources.cpus.formula, a.resources.memory.formula, a.resources.gpus.formula, a.runtime}
	if a.size != nil && slices.ContainsFunc(a.size.Facts, func(f expression.Fact) bool { return f.Name != factBytes && f.Name != factFiles }) {
		all = append(all, a.size) // bytes are known without reading a file
	}
	all = append(all, a.conditions...)
	for _, d := range a.relations.derived {
		all = append(all, d.value)
	}
	for _, r := range slices.Concat(a.relations.rules, a.relations.warnings) {
		all = append(all, r.that)
	}
	return slices.ContainsFunc(all, func(e *expression.Expression) bool { return e != nil && len(e.Facts) > 0 })
}

// Kept returns the facts that a job keeps until it runs.
func (a *File) Kept(facts Facts) Facts {
	if !a.UsesFacts() {
		return nil
	}
	return facts
}

// SettingsWarnings returns what users had better know of a job with these normalized settings and facts of files: each
// note is a path to a setting, and words that complete a sentence that begins with its name.
func (a *File) SettingsWarnings(normalized json.RawMessage, facts Facts) []fault.Field {
	if len(a.relations.warnings) == 0 {
		return nil
	}
	settings, err := strictjson.Parse(normalized)
	if err != nil {
		return nil
	}
	return a.relations.advise(settings.Members, facts)
}

// factRules returns the faults of settings that are right without the facts.
func (a *File) factRules(settings *strictjson.Value, facts Facts) []fault.Field {
	if !a.UsesFacts() {
		return nil
	}
	return a.relations.checkValues(settings.Members, facts)
}
