package algorithm

import (
	"encoding/json"
	"slices"
	"strings"

	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// condition reads the "if" of a table; nil if there is none, or none that makes sense.
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
		c.Mistakef(n.Line, "if = %q: %v", n.Text, err)
		return nil
	}
	*c.conditions = append(*c.conditions, e)
	noteImpossible(c.Reader, n.Line, c.parameters, e)
	ofFile := func(l expression.Literal) bool { return l.Of == "files" }
	if slices.ContainsFunc(e.Literals, ofFile) && !slices.Contains(c.allowed, "work") {
		c.Mistakef(n.Line, "the end of a file's name means nothing here: files have no extension yet")
	}
	return e
}

// where returns a reader of what stands where a condition holds: the settings and files that
// it reads have values.
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

// noteImpossible notes literals that a setting or the name of a file never equals.
func noteImpossible(r *tomltree.Reader, line int, parameters Parameters, e *expression.Expression) {
	for _, l := range e.Literals {
		p := parameters.Named(l.Name)
		if text, isText := l.Value.(string); l.Of == "files" && isText {
			if !slices.ContainsFunc(p.File, func(ext string) bool { return strings.HasSuffix(ext, text) }) {
				r.Mistakef(line, "the parameter %q takes no file whose name ends with %q: it takes %s", p.Name, text, tomltree.OrList(p.File))
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
			r.Mistakef(line, "the setting %q never is %s: it %s", p.Name, encoded, f.Msg)
		}
	}
}
