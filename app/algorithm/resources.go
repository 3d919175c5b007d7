package algorithm

import (
	"fmt"
	"math"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/expression"
	"molrun/app/algorithm/schema"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
	"molrun/app/base/unit"
)

// leastComputed is the minimum for a computed amount of memory.
const leastComputed = 64 << 20

// defaultMemory is reserved for an algorithm that does not declare its memory.
const defaultMemory = 1 << 30

// Upper limits for algorithm files; anything higher is assumed to be a typo.
const (
	maxCPUs   = 1 << 16
	maxGPUs   = 1 << 10
	maxMemory = 1 << 50
)

// resources are the requirements that an algorithm file declares for its jobs.
type resources struct {
	cpus, memory, gpus resource
	gpuMemory          int64 // bytes per GPU; 0 for any
}

// resource is an amount that is fixed, taken from a setting, or computed.
type resource struct {
	amount  int64
	setting string // "" if fixed
	suffix  string // follows the setting, as in "{settings.memory_gb}GiB"

	formula *expression.Expression // nil if not computed
	unit    float64                // multiplies the value of the formula
}

func readResources(r *tomltree.Reader, parameters Parameters, known []derived) resources {
	all := resources{cpus: resource{amount: 1}, memory: resource{amount: defaultMemory}}
	t := r.Table(r.Root, "resources")
	if t == nil {
		return all
	}
	if n := t.Member("cpus"); n != nil {
		all.cpus = readAmount(r, parameters, known, n, "cpus", 1, maxCPUs)
	}
	if n := t.Member("gpus"); n != nil {
		all.gpus = readAmount(r, parameters, known, n, "gpus", 0, maxGPUs)
	}
	if n := t.Member("gpu_memory"); n != nil && n.Kind == strictjson.String {
		size, ok := parseBytes(n.Text)
		if !ok || size == 0 {
			r.Errorf(n.Line, `gpu_memory %q is not a size: write it like "24GiB"`, n.Text)
		}
		all.gpuMemory = size
	}
	if n := t.Member("memory"); n != nil {
		all.memory = readMemory(r, parameters, known, n)
	}
	return all
}

// readAmount reads a number, an integer "{settings.NAME}", or a formula.
func readAmount(r *tomltree.Reader, parameters Parameters, known []derived, n *tomltree.Node, what string, lowest, highest int64) resource {
	if n.Kind != strictjson.String {
		return resource{amount: r.Within(n, what, lowest, highest)}
	}
	t, wrong := command.ParseTemplate(n.Text)
	name, ok := t.Setting()
	if !strings.Contains(n.Text, "{") {
		return readFormula(r, parameters, known, n, what, 1)
	}
	if !ok || len(wrong) > 0 {
		r.Errorf(n.Line, `%s must be a number or "{settings.NAME}", got %q`, what, n.Text)
		return resource{}
	}
	from := resource{setting: name}
	checkReference(r, parameters, n, what, from, lowest, highest, "integer")
	return from
}

func readMemory(r *tomltree.Reader, parameters Parameters, known []derived, n *tomltree.Node) resource {
	if n.Kind != strictjson.String {
		i, ok := r.Integer(n, "memory")
		if ok && (i < 0 || i > maxMemory) {
			r.Errorf(n.Line, "memory must be between 0 and %d bytes, got %d", int64(maxMemory), i)
		}
		return resource{amount: i}
	}
	t, wrong := command.ParseTemplate(n.Text)
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
	if !strings.ContainsAny(n.Text, "{}") {
		return readFormula(r, parameters, known, n, "memory", 1<<30)
	}
	r.Errorf(n.Line, `memory %q is not a size: write it like "500MB", "2GiB", a number of bytes, "{settings.NAME}" or "{settings.NAME}GiB"`, n.Text)
	return m
}

// readFormula reads a computed amount; units is the unit of its value.
func readFormula(r *tomltree.Reader, parameters Parameters, known []derived, n *tomltree.Node, what string, units float64) resource {
	e, err := expression.Parse(n.Text, namesOf(parameters, known))
	if err != nil {
		hint := ""
		if what == "memory" {
			hint = `; write a size like "500MB", "2GiB" or "{settings.NAME}GiB"`
		}
		r.Errorf(n.Line, "%s = %q is neither an amount nor an expression: %v%s", what, n.Text, err, hint)
		return resource{}
	}
	if e.Kind != expression.Number && e.Kind != expression.Any {
		r.Errorf(n.Line, "%s = %q is not a number", what, n.Text)
	}
	for _, name := range needsOf(e, parameters, known) {
		r.Errorf(n.Line, "%s reads the parameter %q, which can be unset: make it required or give it a default", what, name)
	}
	return resource{formula: e, unit: units}
}

// checkReference checks the parameter that a resource refers to.
func checkReference(r *tomltree.Reader, parameters Parameters, n *tomltree.Node, what string, from resource, lowest, highest int64, types ...string) {
	p := parameters.Named(from.setting)
	switch {
	case p == nil:
		parameters.reportUnknown(r, n.Line, from.setting)
	case len(p.File) > 0 || !p.compiled.IsOneOf(types...):
		r.Errorf(n.Line, "%s comes from the parameter %q, whose type must be %s", what, p.Name, tomltree.OrList(types))
	case p.optional():
		r.Errorf(n.Line, "%s comes from the parameter %q, which can be unset: make it required or give it a default", what, p.Name)
	case p.fallback != nil:
		settings := &strictjson.Value{Kind: strictjson.Object, Members: []strictjson.Member{{Name: p.Name, Value: p.fallback}}}
		if _, msg := from.amountOf(settings, lowest, highest); msg != "" {
			r.Errorf(n.Line, "%s comes from the parameter %q, whose default %s", what, p.Name, msg)
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

// computed returns the value of the formula, or an error message.
func (r resource) computed(values expression.Values, lowest, highest int64) (int64, string) {
	got, err := r.formula.Value(values)
	if err != nil {
		return 0, fmt.Sprintf("determines the job's resources, which can't be computed (%s): %v", r.formula.Text, err)
	}
	n, isNumber := got.(float64)
	n = max(math.Ceil(n*r.unit), float64(lowest))
	if !isNumber || n > float64(highest) {
		return 0, fmt.Sprintf("determines the job's resources, and %s is %v, which is too much", r.formula.Text, got)
	}
	return int64(n), ""
}

// settingPath returns the path of the setting that determines the amount.
func (r resource) settingPath() []any {
	switch {
	case r.formula != nil:
		return firstOf(r.formula)
	case r.setting != "":
		return []any{r.setting}
	}
	return nil
}

// amountOf returns the amount for a job, or an error message.
func (r resource) amountOf(settings *strictjson.Value, lowest, highest int64) (int64, string) {
	if r.setting == "" {
		return r.amount, ""
	}
	v := settings.Member(r.setting)
	if v == nil {
		return 0, "is required: it determines the job's resources"
	}
	if v.Kind == strictjson.Number && r.suffix == "" {
		n, ok := v.Int()
		if !ok || n < lowest || n > highest {
			return 0, fmt.Sprintf("must be a whole number from %d to %d, got %s", lowest, highest, schema.ShortValue(v))
		}
		return n, ""
	}
	n, ok := parseBytes(command.ArgumentText(v) + r.suffix)
	if !ok {
		return 0, fmt.Sprintf("must be a size such as 2GiB, got %s%s", schema.ShortValue(v), r.suffix)
	}
	return n, ""
}

// exceeded returns the errors of a job that needs more than is available: one at the
// setting that requests it, and one at each file that it depends on.
func (r resource) exceeded(where, amounts string) []fault.Field {
	msg := fmt.Sprintf("the job would need more than %s: %s", where, amounts)
	faults := []fault.Field{{Loc: r.settingPath(), Type: "value", Msg: msg + "; request less"}}
	if r.formula == nil || len(r.formula.Facts) == 0 {
		return faults
	}
	if len(r.formula.Settings) == 0 {
		faults = nil
	}
	files := map[string]bool{}
	for _, fact := range r.formula.Facts {
		if !files[fact.File] {
			faults = append(faults, fault.Field{Loc: []any{fact.File}, Type: "value", Msg: msg + ", because the requirement grows with this file; use a smaller one"})
		}
		files[fact.File] = true
	}
	return faults
}

// minAmount returns a lower bound on what a job of the algorithm needs.
func (r resource) minAmount(parameters Parameters) int64 {
	switch {
	case r.formula != nil && r.unit > 1: // memory
		return leastComputed
	case r.formula != nil:
		return 0
	}
	if r.setting == "" {
		return r.amount
	}
	digits, ok := parameters.Named(r.setting).compiled.Minimum()
	if !ok {
		return 0
	}
	n, _ := parseBytes(digits + r.suffix)
	return n
}
