package algorithm

import (
	"fmt"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/schema"
	"molrun/app/fault"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
	"molrun/app/unit"
)

// defaultMemory is reserved for an algorithm that does not say what it needs.
const defaultMemory = 1 << 30

// What an algorithm may ask for; more is a typing error.
const (
	maxCPUs   = 1 << 16
	maxGPUs   = 1 << 10
	maxMemory = 1 << 50
)

// resources are what jobs of an algorithm need, as its file says.
type resources struct {
	cpus, memory, gpus resource
}

// resource is a fixed amount or one that a setting gives.
type resource struct {
	amount  int64
	setting string // "": fixed
	suffix  string // behind the setting, as in "{settings.memory_gb}GiB"
}

func readResources(r *tomltree.Reader, parameters Parameters) resources {
	all := resources{cpus: resource{amount: 1}, memory: resource{amount: defaultMemory}}
	t := r.Table(r.Root, "resources")
	if t == nil {
		return all
	}
	r.Known(t, "[resources]", []string{"cpus", "memory", "gpus"})
	if n := t.Member("cpus"); n != nil {
		all.cpus = readAmount(r, parameters, n, "cpus", 1, maxCPUs)
	}
	if n := t.Member("gpus"); n != nil {
		all.gpus = readAmount(r, parameters, n, "gpus", 0, maxGPUs)
	}
	if n := t.Member("memory"); n != nil {
		all.memory = readMemory(r, parameters, n)
	}
	return all
}

// readAmount reads a number or "{settings.NAME}" of a whole number.
func readAmount(r *tomltree.Reader, parameters Parameters, n *tomltree.Node, what string, lowest, highest int64) resource {
	if n.Kind != strictjson.String {
		return resource{amount: r.Within(n, what, lowest, highest)}
	}
	t, wrong := command.Parse(n.Text)
	name, ok := t.Setting()
	if !ok || len(wrong) > 0 {
		r.Mistakef(n.Line, `%s must be a number or "{settings.NAME}", got %q`, what, n.Text)
		return resource{}
	}
	from := resource{setting: name}
	checkReference(r, parameters, n, what, from, lowest, highest, "integer")
	return from
}

func readMemory(r *tomltree.Reader, parameters Parameters, n *tomltree.Node) resource {
	if n.Kind != strictjson.String {
		i, ok := r.Integer(n, "memory")
		if ok && (i < 0 || i > maxMemory) {
			r.Mistakef(n.Line, "memory must be between 0 and %d bytes, got %d", int64(maxMemory), i)
		}
		return resource{amount: i}
	}
	t, wrong := command.Parse(n.Text)
	m := resource{}
	if len(wrong) == 0 && len(t) > 0 && t[0].Kind == "settings" {
		m.setting = t[0].Name
		suffix, plain := t[1:].Literal()
		m.suffix = suffix
		if _, ok := parseBytes("1" + suffix); ok && plain {
			checkReference(r, parameters, n, "memory", m, 0, maxMemory, "integer", "number", "string")
			return m
		}
	} else if bytes, ok := parseBytes(n.Text); ok {
		return resource{amount: bytes}
	}
	r.Mistakef(n.Line, `memory %q is no size: write it like "500MB", "2GiB", a number of bytes, "{settings.NAME}" or "{settings.NAME}GiB"`, n.Text)
	return m
}

// checkReference checks the parameter that a resource comes from.
func checkReference(r *tomltree.Reader, parameters Parameters, n *tomltree.Node, what string, from resource, lowest, highest int64, types ...string) {
	p := parameters.Named(from.setting)
	switch {
	case p == nil:
		parameters.noteUnknown(r, n.Line, from.setting)
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
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	var size unit.Bytes
	err := size.UnmarshalText([]byte(s))
	return int64(size), err == nil && size <= maxMemory
}

// of returns the amount for a job, or what is wrong with it.
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
	n, ok := parseBytes(command.Text(v) + r.suffix)
	if !ok {
		return 0, fmt.Sprintf("must be a size such as 2GiB, got %s%s", schema.Shown(v), r.suffix)
	}
	return n, ""
}

// tooMuch is the fault of a job that needs more than there is, at the setting
// that asks for it.
func (r resource) tooMuch(where, amounts string) fault.Field {
	f := fault.Field{Type: "value", Msg: fmt.Sprintf("the job would need more than %s: %s; ask for less", where, amounts)}
	if r.setting != "" {
		f.Loc = []any{r.setting}
	}
	return f
}

// least returns the smallest amount that a job of the algorithm may need.
func (r resource) least(parameters Parameters) int64 {
	if r.setting == "" {
		return r.amount
	}
	digits, ok := parameters.Named(r.setting).compiled.Least()
	if !ok {
		return 0
	}
	n, _ := parseBytes(digits + r.suffix)
	return n
}
