package algorithm

import (
	"encoding/json"
	"fmt"

	"molrun/app/algorithm/schema"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
	"molrun/app/unit"
)

// defaultMemory is booked for an algorithm that does not say what it needs.
const defaultMemory = 1 << 30

// What an algorithm may ask for; more is a slip of the pen.
const (
	maxCPUs   = 1 << 16
	maxGPUs   = 1 << 10
	maxMemory = 1 << 50
)

// readResources are what jobs of an algorithm need, as its file says.
type resources struct {
	cpus, memory, gpus resource
}

// resource is a fixed amount or one that a setting gives.
type resource struct {
	amount  int64
	setting string // "": fixed
	suffix  string // unit behind the setting, as in "{settings.memory_gb}GiB"
}

func readResources(r *tomltree.Reader, a *File, root *tomltree.Node) resources {
	all := resources{cpus: resource{amount: 1}, memory: resource{amount: defaultMemory}}
	t := r.Table(root, "resources")
	if t == nil {
		return all
	}
	r.Known(t, "[resources]", []string{"cpus", "memory", "gpus"})
	if n := t.Member("cpus"); n != nil {
		all.cpus = readAmount(r, a, n, "cpus", 1, maxCPUs)
	}
	if n := t.Member("gpus"); n != nil {
		all.gpus = readAmount(r, a, n, "gpus", 0, maxGPUs)
	}
	if n := t.Member("memory"); n != nil {
		all.memory = readMemory(r, a, n)
	}
	return all
}

// readAmount reads a number or "{settings.NAME}" of a whole number.
func readAmount(r *tomltree.Reader, a *File, n *tomltree.Node, what string, lowest, highest int64) resource {
	if n.Kind != strictjson.String {
		return resource{amount: r.Within(n, what, lowest, highest)}
	}
	t, wrong := parseTemplate(n.Text)
	name, ok := t.setting()
	if !ok || len(wrong) > 0 {
		r.Mistakef(n.Line, `%s must be a number or "{settings.NAME}", got %q`, what, n.Text)
		return resource{}
	}
	from := resource{setting: name}
	checkReference(r, a, n, what, from, lowest, highest, "integer")
	return from
}

func readMemory(r *tomltree.Reader, a *File, n *tomltree.Node) resource {
	if n.Kind != strictjson.String {
		i, ok := r.Integer(n, "memory")
		if ok && (i < 0 || i > maxMemory) {
			r.Mistakef(n.Line, "memory must be between 0 and %d bytes, got %d", int64(maxMemory), i)
		}
		return resource{amount: i}
	}
	t, wrong := parseTemplate(n.Text)
	m := resource{}
	if len(wrong) == 0 && len(t) > 0 && t[0].kind == "settings" {
		m.setting = t[0].name
		suffix, plain := t[1:].literal()
		m.suffix = suffix
		if _, ok := parseBytes("1" + suffix); ok && plain {
			checkReference(r, a, n, "memory", m, 0, maxMemory, "integer", "number", "string")
			return m
		}
	} else if bytes, ok := parseBytes(n.Text); ok {
		return resource{amount: bytes}
	}
	r.Mistakef(n.Line, `memory %q is no size: write it like "500MB", "2GiB", a number of bytes, "{settings.NAME}" or "{settings.NAME}GiB"`, n.Text)
	return m
}

// checkReference checks the parameter that a resource comes from.
func checkReference(r *tomltree.Reader, a *File, n *tomltree.Node, what string, from resource, lowest, highest int64, types ...string) {
	p := a.parameter(from.setting)
	switch {
	case p == nil:
		noteUnknownParameter(r, a, n.Line, from.setting)
	case len(p.File) > 0 || !p.compiled.IsOneOf(types...):
		r.Mistakef(n.Line, "%s comes from the parameter %q, whose type must be %s", what, p.Name, tomltree.OrList(types))
	case p.optional():
		r.Mistakef(n.Line, "%s comes from the parameter %q, which may have no value: make it required or give it a default", what, p.Name)
	case p.fallback != nil:
		settings := &strictjson.Value{Kind: strictjson.Object, Members: []strictjson.Member{{Name: p.Name, Value: p.fallback}}}
		if _, msg := from.of(settings, lowest, highest); msg != "" {
			r.Mistakef(n.Line, "%s comes from the parameter %q, whose default %s", what, p.Name, msg)
		}
	}
}

// parseBytes reads a size such as 500MB, 1.5 GiB or 1048576.
func parseBytes(s string) (int64, bool) {
	if s == "" || !isDigit(s[0]) {
		return 0, false
	}
	var size unit.Bytes
	err := size.UnmarshalText([]byte(s))
	return int64(size), err == nil && size <= maxMemory
}

// Needs gives the resources of a job with these normalised settings; a fault
// names the setting that asks for what cannot be.
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

// of gives the amount for a job, or what is wrong with it.
func (r resource) of(settings *strictjson.Value, lowest, highest int64) (int64, string) {
	if r.setting == "" {
		return r.amount, ""
	}
	v := settings.Member(r.setting)
	if v == nil {
		return 0, "is required: it says what the job needs"
	}
	if v.Kind == strictjson.Number && r.suffix == "" {
		n, ok := v.Int()
		if !ok || n < lowest || n > highest {
			return 0, fmt.Sprintf("must be a whole number from %d to %d, got %s", lowest, highest, schema.Shown(v))
		}
		return n, ""
	}
	n, ok := parseBytes(argumentText(v) + r.suffix)
	if !ok {
		return 0, fmt.Sprintf("must be a size such as 2GiB, got %s%s", schema.Shown(v), r.suffix)
	}
	return n, ""
}

// tooMuch is the fault of asking for more than there is, at the setting that asks
// for it, if one does.
func (r resource) tooMuch(where, amounts string) fault.Field {
	f := fault.Field{Type: "value", Msg: fmt.Sprintf("the job would need more than %s: %s; ask for less", where, amounts)}
	if r.setting != "" {
		f.Loc = []any{r.setting}
	}
	return f
}

// least gives the smallest amount that some job of the algorithm may need.
func (r resource) least(a *File) int64 {
	if r.setting == "" {
		return r.amount
	}
	digits, ok := a.parameter(r.setting).compiled.Least()
	if !ok {
		return 0
	}
	n, _ := parseBytes(digits + r.suffix)
	return n
}

// Beyond gives a fault for each need that a node does not meet; where says in
// the sentence which node that is.
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
