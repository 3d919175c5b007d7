package algorithm

import (
	"encoding/json"
	"slices"
	"strings"

	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// condition reads the "if" of a table, or nil if there is none or it is invalid.
func (c *commandReader) condition(t *tomltree.Node) *expression.Expression {
	n := t.Member("if")
	if n == nil || n.Kind != strictjson.String {
		return nil
	}
	names := namesOf(c.parameters, c.derived)
	names.Files = map[string]expression.Kind{}
	for _, p := range c.parameters.Files() {
		if names.Files[p.Name] = expression.Text; p.Many {
			names.Files[p.Name] = expression.List
		}
	}
	e, err := expression.ParseCondition(n.Text, names)
	if err != nil {
		c.Errorf(n.Line, "if = %q: %v", n.Text, err)
		return nil
	}
	*c.conditions = append(*c.conditions, e)
	noteImpossible(c.Reader, n.Line, c.parameters, e)
	ofFile := func(l expression.Literal) bool { return l.Of == "files" }
	if slices.ContainsFunc(e.Literals, ofFile) && !slices.Contains(c.allowed, "work") {
		c.Errorf(n.Line, "endsWith can't be used here: files have no extension yet")
	}
	return e
}

// where returns a reader for content that applies only if a condition holds. In this
// content, the settings and files used by the condition are known to have values.
func (c *commandReader) where(when *expression.Expression) *commandReader {
	inside := *c
	if when == nil {
		return &inside
	}
	optional := func(name string) bool { return slices.Contains(when.Optional, name) }
	inside.given = slices.Concat(c.given, slices.DeleteFunc(slices.Clone(when.Settings), optional), when.Files)
	for _, d := range c.derived {
		if slices.Contains(when.Derived, d.name) {
			inside.given = append(inside.given, d.needs...)
		}
	}
	return &inside
}

// noteImpossible reports literals that a setting or file name can never equal.
func noteImpossible(r *tomltree.Reader, line int, parameters Parameters, e *expression.Expression) {
	for _, l := range e.Literals {
		p := parameters.Named(l.Name)
		if text, isText := l.Value.(string); l.Of == "files" && isText {
			if !slices.ContainsFunc(p.File, func(ext string) bool { return strings.HasSuffix(ext, text) }) {
				r.Errorf(line, "the parameter %q does not accept files ending in %q; it accepts %s", p.Name, text, tomltree.OrList(p.File))
			}
			continue
		}
		encoded, err := json.Marshal(l.Value)
		if err != nil || len(p.File) > 0 || p.compiled == nil {
			continue
		}
		v, err := strictjson.Parse(encoded)
		if err != nil {
			continue
		}
		for _, f := range p.compiled.Check(v, p.Unit) {
			r.Errorf(line, "the setting %q can never be %s: it %s", p.Name, encoded, f.Msg)
		}
	}
}
