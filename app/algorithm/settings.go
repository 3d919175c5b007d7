package algorithm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
		if value == nil || value.Kind == strictjson.Null && !p.nullable {
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
	var faults []fault.Field
	var invalid *jsonschema.ValidationError
	if errors.As(p.compiled.Validate(v.Any()), &invalid) {
		faults = sentences(invalid, v, p.Unit)
	}
	faults = appendTextFaults(faults, v, nil)
	if len(faults) == 0 {
		faults = appendIntegerFaults(faults, v, p.words, nil)
	}
	if p.argument && len(faults) == 0 && len(argumentText(v)) > maxArgument {
		faults = []fault.Field{{Loc: []any{}, Msg: fmt.Sprintf("is too long for a program's arguments: at most %d KiB", maxArgument>>10), Type: "value"}}
	}
	for i := range faults {
		faults[i].Loc = slices.Insert(faults[i].Loc, 0, any(p.Name))
	}
	return faults
}

// appendTextFaults refuses NUL characters: no argument, variable or file name
// can hold one.
func appendTextFaults(faults []fault.Field, v *strictjson.Value, path []any) []fault.Field {
	switch {
	case v.Kind == strictjson.String && strings.ContainsRune(v.Text, 0):
		return append(faults, fault.Field{Loc: slices.Clone(path), Msg: "must not contain a NUL character", Type: "value"})
	case v.Kind == strictjson.Array:
		for i, item := range v.Items {
			faults = appendTextFaults(faults, item, append(slices.Clip(path), i))
		}
	case v.Kind == strictjson.Object:
		for _, m := range v.Members {
			faults = appendTextFaults(faults, m.Value, append(slices.Clip(path), m.Name))
		}
	}
	return faults
}

// appendIntegerFaults refuses whole numbers beyond ±2^53, which many programs
// would round, unless the schema sets a limit of its own.
func appendIntegerFaults(faults []fault.Field, v *strictjson.Value, schema map[string]any, path []any) []fault.Field {
	switch v.Kind {
	case strictjson.Array:
		items, _ := schema["items"].(map[string]any)
		for i, item := range v.Items {
			faults = appendIntegerFaults(faults, item, items, append(slices.Clip(path), i))
		}
	case strictjson.Number:
		if _, ok := v.Int(); !ok && wantsPlainInteger(schema) {
			return append(faults, fault.Field{Loc: slices.Clone(path), Msg: "must be within ±9007199254740992 (2^53), got " + shown(v), Type: "value"})
		}
	}
	return faults
}

// wantsPlainInteger reports whether a schema asks for a whole number and says
// nothing about its size.
func wantsPlainInteger(schema map[string]any) bool {
	types := typesOf(schema)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return schema[w] != nil })
	}
	limited := has("minimum", "exclusiveMinimum") && has("maximum", "exclusiveMaximum") || has("enum", "const")
	return slices.Contains(types, "integer") && !slices.Contains(types, "number") && !limited
}
