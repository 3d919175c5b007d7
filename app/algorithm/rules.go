package algorithm

import (
	"fmt"
	"strings"

	"molrun/app/algorithm/expression"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// relations holds the relations between settings: derived values, rules and mutually
// exclusive choices.
type relations struct {
	derived    []derived
	rules      []rule
	warnings   []rule // rules whose violation is only a warning
	choices    []choice
	parameters Parameters
}

func readRelations(r *tomltree.Reader, parameters Parameters) relations {
	known := readDerived(r, parameters)
	return relations{
		derived: known, rules: readRules(r, "rules", parameters, known), warnings: readRules(r, "advice", parameters, known),
		choices: readChoices(r, parameters), parameters: parameters,
	}
}

// rule is an entry of [[rules]], which the settings must satisfy together, or of
// [[advice]], whose violation is only a warning.
type rule struct {
	condition *expression.Expression
	message   string
	at        []any // path of the setting reported with the error
}

// choice is an entry of [[one_of]]: settings of which exactly one must be given.
type choice struct{ names []string }

func readRules(r *tomltree.Reader, table string, parameters Parameters, known []derived) []rule {
	var all []rule
	for _, t := range r.Tables(r.Root, table) {
		made := rule{message: r.Line(t, "message")}
		n := t.Member("that")
		if n == nil || n.Kind != strictjson.String {
			continue
		}
		var err error
		if made.condition, err = expression.ParseRule(n.Text, namesOf(parameters, known)); err != nil {
			r.Errorf(n.Line, "that = %q: %v", n.Text, err)
			continue
		}
		made.at = firstOf(made.condition)
		if at := t.Member("at"); at != nil {
			name := r.Text(t, "at")
			if parameters.Named(name) == nil {
				parameters.reportUnknown(r, at.Line, name)
			}
			made.at = []any{name}
		}
		all = append(all, made)
	}
	return all
}

func readChoices(r *tomltree.Reader, parameters Parameters) []choice {
	var all []choice
	for _, t := range r.Tables(r.Root, "one_of") {
		c := choice{r.Texts(t, "parameters")}
		if len(c.names) < 2 {
			r.Errorf(t.Line, `[[one_of]] needs a list of mutually exclusive parameters: parameters = ["smiles", "ligand"]`)
			continue
		}
		for i, name := range c.names {
			line := t.Member("parameters").Items[i].Line
			switch p := parameters.Named(name); {
			case p == nil:
				parameters.reportUnknown(r, line, name)
			case p.Required || p.fallback != nil:
				r.Errorf(line, "the parameter %q always has a value: members of [[one_of]] must not be required or have a default", name)
			}
		}
		all = append(all, c)
	}
	return all
}

// checkValues finds errors that a schema can't express, such as conflicting settings.
func (all relations) checkValues(settings []strictjson.Member, facts Facts) []fault.Field {
	if len(all.choices)+len(all.rules)+len(all.derived) == 0 {
		return nil
	}
	values, faults := all.values(settings, facts, nil)
	for _, c := range all.choices {
		faults = append(faults, c.checkValues(values)...)
	}
	for _, r := range all.rules {
		switch broken, err := r.broken(values); {
		case err != nil:
			faults = append(faults, fault.Field{Loc: r.at, Type: "value", Msg: fmt.Sprintf("can't be checked (%s): %v", r.condition.Text, err)})
		case broken:
			faults = append(faults, fault.Field{Loc: r.at, Type: "value", Msg: r.message})
		}
	}
	return faults
}

// broken reports whether the rule is violated. A rule that uses a setting without a value
// is satisfied.
func (r *rule) broken(values expression.Values) (bool, error) {
	if r.condition.Lacks(values) {
		return false, nil
	}
	holds, err := r.condition.Value(values)
	return holds != true, err
}

// warn returns warnings about settings that are valid but probably unintended.
func (all relations) warn(settings []strictjson.Member, facts Facts) (notes []fault.Field) {
	values, _ := all.values(settings, facts, nil)
	for _, a := range all.warnings {
		if broken, err := a.broken(values); err == nil && broken {
			notes = append(notes, fault.Field{Loc: a.at, Type: "advice", Msg: a.message})
		}
	}
	return notes
}

func (c choice) checkValues(values expression.Values) []fault.Field {
	var given []string
	for _, name := range c.names {
		if values.Settings[name] != nil {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0:
		return []fault.Field{{Loc: []any{c.names[0]}, Type: "missing", Msg: "is missing: give one of " + strings.Join(c.names, ", ")}}
	case len(given) > 1:
		return []fault.Field{{Loc: []any{given[1]}, Type: "value", Msg: "is given together with " + given[0] + ": give only one of " + strings.Join(c.names, ", ")}}
	}
	return nil
}
