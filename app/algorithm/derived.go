package algorithm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/expression"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// derived is an entry of [derived]: a value computed from settings and preceding derived
// values.
type derived struct {
	name  string
	value *expression.Expression
	needs []string // settings without which it is undefined
}

func readDerived(r *tomltree.Reader, parameters Parameters) []derived {
	t := r.Table(r.Root, "derived")
	if t == nil {
		return nil
	}
	var all []derived
	names := namesOf(parameters, nil)
	for _, m := range t.Members {
		if !parameterPattern.MatchString(m.Name) {
			r.Errorf(m.Line, "%q is not a valid name for a derived value: use letters, digits and _", m.Name)
		}
		if m.Value.Kind != strictjson.String {
			continue
		}
		e, err := expression.Parse(m.Value.Text, names)
		if err != nil {
			r.Errorf(m.Line, "%s = %q: %v", m.Name, m.Value.Text, err)
			continue
		}
		d := derived{m.Name, e, needsOf(e, parameters, all)}
		names.Derived[m.Name] = e.Kind
		all = append(all, d)
	}
	return all
}

// namesOf returns the names that expressions can use.
func namesOf(parameters Parameters, known []derived) expression.Names {
	names := expression.Names{Settings: map[string]expression.Kind{}, Derived: map[string]expression.Kind{}, Facts: parameters.factNames()}
	for i := range parameters {
		names.Settings[parameters[i].Name] = parameters[i].kind()
	}
	for _, d := range known {
		names.Derived[d.name] = d.value.Kind
	}
	return names
}

// kind returns the type of the setting in expressions.
func (p *Parameter) kind() expression.Kind {
	switch {
	case p.compiled == nil || p.compiled.AcceptsNull():
	case p.compiled.IsOneOf("integer", "number"):
		return expression.Number
	case p.compiled.IsOneOf("string"):
		return expression.Text
	case p.compiled.IsOneOf("boolean"):
		return expression.Flag
	case p.compiled.IsOneOf("array"):
		return expression.List
	}
	return expression.Any
}

// needsOf returns the settings without which an expression is undefined.
func needsOf(e *expression.Expression, parameters Parameters, before []derived) []string {
	var needs []string
	for _, name := range e.Settings {
		if p := parameters.Named(name); p != nil && p.optional() && !slices.Contains(e.Optional, name) {
			needs = append(needs, name)
		}
	}
	for _, d := range before {
		if slices.Contains(e.Derived, d.name) {
			needs = append(needs, d.needs...)
		}
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}

// nativeSettings converts settings for use in expressions.
func nativeSettings(settings []strictjson.Member) map[string]any {
	native := make(map[string]any, len(settings))
	for _, s := range settings {
		native[s.Name] = expression.Native(s.Value)
	}
	return native
}

// values returns the settings, file metadata and derived values in the form that
// expressions use. Metadata that is not yet known is replaced with unknown. It returns an
// error for each derived value that can't be computed.
func (all relations) values(settings []strictjson.Member, facts Facts, unknown any) (expression.Values, []fault.Field) {
	v := expression.Values{Settings: nativeSettings(settings), Derived: map[string]any{}, Facts: all.parameters.factsOf(settings, facts, unknown)}
	var faults []fault.Field
	for _, d := range all.derived {
		if d.value.Lacks(v) {
			continue
		}
		got, err := d.value.Value(v)
		if err != nil {
			faults = append(faults, fault.Field{Loc: firstOf(d.value), Type: "value", Msg: fmt.Sprintf("conflicts with the other settings: %s (%s) can't be computed: %v", d.name, d.value.Text, err)})
			continue
		}
		v.Derived[d.name] = got
	}
	return v, faults
}

// texts returns the derived values as text for arguments.
func (all relations) texts(settings *strictjson.Value, facts Facts) (map[string]string, error) {
	values, faults := all.values(settings.Members, facts, nil)
	if len(faults) > 0 {
		return nil, errors.New(faults[0].Msg)
	}
	texts := make(map[string]string, len(values.Derived))
	for name, v := range values.Derived {
		encoded, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("the derived value %s: %w", name, err)
		}
		value, err := strictjson.Parse(encoded)
		if err != nil {
			return nil, fmt.Errorf("the derived value %s: %w", name, err)
		}
		texts[name] = command.ArgumentText(value)
	}
	return texts, nil
}

// firstOf returns the path of the first setting that an expression uses, or of the first
// file if it uses no setting.
func firstOf(e *expression.Expression) []any {
	switch {
	case len(e.Settings) > 0:
		return []any{e.Settings[0]}
	case len(e.Facts) > 0:
		return []any{e.Facts[0].File}
	}
	return []any{}
}
