package algorithm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"molrun/app/fault"
	"molrun/app/nearest"
	"molrun/app/strictjson"
)

// maxArgument bounds what one setting may add to a command line; Linux takes
// 128 KiB for one argument.
const maxArgument = 100 << 10

// CheckSettings gives the normalised settings (constant defaults filled in,
// members sorted, numbers plain and exact) and every fault; a fault's path
// begins below the settings. A null for a parameter that has no use for null
// counts as no value.
func (a *File) CheckSettings(v *strictjson.Value) (json.RawMessage, []fault.Field) {
	if v == nil || v.Kind != strictjson.Object {
		return nil, []fault.Field{{Loc: []any{}, Msg: "settings must be an object", Type: "type"}}
	}
	faults := a.unknownSettings(v)
	var members []strictjson.Member
	for i := range a.Parameters {
		p := &a.Parameters[i]
		value := v.Member(p.Name)
		if value == nil || value.Kind == strictjson.Null && !p.compiled.TakesNull() {
			value = p.fallback
		} else {
			faults = append(faults, p.faults(value)...)
		}
		switch {
		case value != nil:
			members = append(members, strictjson.Member{Name: p.Name, Value: value})
		case p.Required:
			faults = append(faults, fault.Field{Loc: []any{p.Name}, Msg: "is required", Type: "missing"})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return strictjson.AppendPlainMembers(nil, members), nil
}

func (a *File) unknownSettings(v *strictjson.Value) []fault.Field {
	var faults []fault.Field
	for _, m := range v.Members {
		if a.parameter(m.Name) != nil {
			continue
		}
		names := a.parameterNames()
		msg := fmt.Sprintf("%s has no setting %q", a.Type, m.Name)
		switch near := nearest.Of(m.Name, names); {
		case near != "":
			msg += fmt.Sprintf("; did you mean %q?", near)
		case len(names) > 0:
			msg += "; it has " + strings.Join(names, ", ")
		}
		faults = append(faults, fault.Field{Loc: []any{m.Name}, Msg: msg, Type: "unknown"})
	}
	return faults
}

// faults gives all that is wrong with a value given for the parameter; paths
// begin with its name.
func (p *Parameter) faults(v *strictjson.Value) []fault.Field {
	faults := p.compiled.Check(v, p.Unit)
	if p.argument && len(faults) == 0 && len(argumentText(v)) > maxArgument {
		faults = []fault.Field{{Loc: []any{}, Msg: fmt.Sprintf("is too long for a program's arguments: at most %d KiB", maxArgument>>10), Type: "value"}}
	}
	for i := range faults {
		faults[i].Loc = slices.Insert(faults[i].Loc, 0, any(p.Name))
	}
	return faults
}
