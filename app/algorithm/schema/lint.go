package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// Lint reports keywords in schema and its subschemas that JSON Schema does not define, or
// that have no effect where they are. The library ignores them silently, so a misspelled
// limit would go unnoticed. own lists the additional keys of a parameter.
func Lint(r *tomltree.Reader, schema *tomltree.Node, own []string) {
	c := checker{r, own}
	c.schema(schema, own)
}

// UnknownWord reports a key that is neither a JSON Schema keyword nor one of the
// parameter's own keys.
func UnknownWord(r *tomltree.Reader, m tomltree.Member, own []string) {
	c := checker{r, own}
	c.unknownWord(m, own)
}

type checker struct {
	*tomltree.Reader
	own []string
}

func (c *checker) schema(schema *tomltree.Node, also []string) {
	types := c.types(schema.Member("type"))
	for _, m := range schema.Members {
		word := words[m.Name]
		if word == nil {
			c.unknownWord(m, also)
			continue
		}
		if len(types) > 0 && len(word.types) > 0 && !overlap(types, word.types) {
			c.Errorf(m.Line, "%s has no effect on a value of type %s: remove it or change the type", m.Name, strings.Join(types, " or "))
		}
		c.patterns(m)
		for _, below := range schemasBelow(word.below, m.Value) {
			c.schema(below, nil)
		}
	}
	c.limits(schema)
}

func (c *checker) unknownWord(m tomltree.Member, also []string) {
	if near := plaintext.Nearest(m.Name, append(Words(), also...)); near != "" {
		c.Errorf(m.Line, "unknown key %q; did you mean %q?", m.Name, near)
		return
	}
	c.Errorf(m.Line, "unknown key %q: it is neither a parameter key (%s) nor a JSON Schema keyword", m.Name, strings.Join(c.own, ", "))
}

// types returns the types that a schema declares, or nil if it declares none.
func (c *checker) types(n *tomltree.Node) []string {
	if n == nil {
		return nil
	}
	items := []*tomltree.Node{n}
	if n.Kind == strictjson.Array {
		items = n.Items
	}
	var types []string
	for _, item := range items {
		switch {
		case item.Kind != strictjson.String:
			c.Errorf(item.Line, "type must be a text, got %s", tomltree.KindName(item.Kind))
		case !slices.Contains(schemaTypes, item.Text):
			msg := "unknown type " + strconv.Quote(item.Text)
			if near := plaintext.Nearest(item.Text, schemaTypes); near != "" {
				msg += fmt.Sprintf("; did you mean %q?", near)
			} else {
				msg += ": use " + tomltree.OrList(schemaTypes)
			}
			c.Errorf(item.Line, "%s", msg)
		default:
			types = append(types, item.Text)
		}
	}
	return types
}

// patterns reports invalid regular expressions.
func (c *checker) patterns(m tomltree.Member) {
	switch {
	case m.Name == "pattern" && m.Value.Kind == strictjson.String:
		c.Expression(m.Value.Line, "pattern", m.Value.Text)
	case m.Name == "patternProperties" && m.Value.Kind == strictjson.Object:
		for _, p := range m.Value.Members {
			c.Expression(p.Line, "pattern", p.Name)
		}
	}
}

func (c *checker) limits(schema *tomltree.Node) {
	for _, pair := range limits {
		low, high := schema.Member(pair[0]), schema.Member(pair[1])
		if low == nil || high == nil || low.Kind != strictjson.Number || high.Kind != strictjson.Number {
			continue
		}
		x, _ := strconv.ParseFloat(low.Text, 64)
		y, _ := strconv.ParseFloat(high.Text, 64)
		if x > y {
			c.Errorf(low.Line, "%s %s is above %s %s: no value can be valid", pair[0], low.Text, pair[1], high.Text)
		}
	}
}

func schemasBelow(kind below, n *tomltree.Node) []*tomltree.Node {
	var all []*tomltree.Node
	switch kind {
	case oneSchema:
		all = append(all, n)
	case schemaList:
		all = n.Items
	case schemaMap:
		for _, m := range n.Members {
			all = append(all, m.Value)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(n *tomltree.Node) bool { return n.Kind != strictjson.Object })
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
