// Package tomltree reads TOML into a tree that preserves lines, the order of keys and the
// digits of numbers, and records every error with its line.
package tomltree

import (
	"strconv"

	"molrun/app/base/strictjson"
)

// Node is a TOML value with its line number, its keys in file order and its numbers as
// written.
type Node struct {
	Kind    strictjson.Kind // Null means a value that JSON does not have, such as a date or inf
	Line    int
	Text    string // of a string, number or boolean, as in strictjson.Value
	Items   []*Node
	Members []Member
}

// Member is a key of a table with its value.
type Member struct {
	Name  string
	Line  int
	Value *Node
}

// Member returns the value of a key, or nil if there is none.
func (n *Node) Member(name string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Name == name {
			return n.Members[i].Value
		}
	}
	return nil
}

// AppendJSON appends the value as JSON.
func (n *Node) AppendJSON(b []byte) []byte {
	switch n.Kind {
	case strictjson.Bool, strictjson.Number:
		return append(b, n.Text...)
	case strictjson.String:
		return strictjson.AppendQuoted(b, n.Text)
	case strictjson.Array:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.AppendJSON(b)
		}
		return append(b, ']')
	case strictjson.Object:
		b = append(b, '{')
		for i, m := range n.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strictjson.AppendQuoted(b, m.Name), ':')
			b = m.Value.AppendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// LineAt returns the line of the deepest value on a path of names and indexes.
func (n *Node) LineAt(path []any) int {
	for _, step := range path {
		var next *Node
		switch step := step.(type) {
		case string:
			next = n.Member(step)
		case int:
			if step < len(n.Items) {
				next = n.Items[step]
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.Line
}

// At returns the value at a path of names and indexes as text.
func (n *Node) At(path []string) *Node {
	for _, step := range path {
		if i, err := strconv.Atoi(step); n.Kind == strictjson.Array && err == nil {
			n = n.Items[i]
			continue
		}
		n = n.Member(step)
	}
	return n
}

// Int returns an integer, or 0 if the value is not one.
func (n *Node) Int() int64 {
	i, err := strconv.ParseInt(n.Text, 10, 64)
	if n.Kind != strictjson.Number || err != nil {
		return 0
	}
	return i
}

// Float returns a number, or 0 if the value is not one.
func (n *Node) Float() float64 {
	if n == nil || n.Kind != strictjson.Number {
		return 0
	}
	f, _ := strconv.ParseFloat(n.Text, 64) // already validated by the parser
	return f
}

// LastLine returns the line on which the last part of the value starts.
func (n *Node) LastLine() int {
	last := n.Line
	for _, item := range n.Items {
		last = max(last, item.LastLine())
	}
	for _, m := range n.Members {
		last = max(last, m.Line, m.Value.LastLine())
	}
	return last
}
