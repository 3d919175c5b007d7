package tomltree

import (
	"regexp"
	"strconv"
	"strings"

	"molrun/app/base/strictjson"
)

// Table returns the table under key, or nil if there is none.
func (r *Reader) Table(t *Node, key string) *Node {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Object {
		return nil
	}
	return n
}

// Tables returns the items of [[key]].
func (r *Reader) Tables(t *Node, key string) []*Node {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Array {
		return nil
	}
	var tables []*Node
	for _, item := range n.Items {
		if item.Kind == strictjson.Object {
			tables = append(tables, item)
		}
	}
	return tables
}

// Text returns a string, or "" if there is none.
func (r *Reader) Text(t *Node, key string) string {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.String {
		return ""
	}
	if strings.ContainsRune(n.Text, 0) {
		r.Errorf(n.Line, "%s must not contain a NUL character", key)
	}
	return n.Text
}

// Line returns a string that is displayed on one line.
func (r *Reader) Line(t *Node, key string) string {
	s := r.Text(t, key)
	if strings.ContainsAny(s, "\r\n") {
		r.Errorf(t.Member(key).Line, "%s must be one line", key)
	}
	return s
}

// Texts returns a list of strings. It has an element for each item of the list, and is
// never nil.
func (r *Reader) Texts(t *Node, key string) []string {
	texts := []string{}
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Array {
		return texts
	}
	for _, item := range n.Items {
		texts = append(texts, item.Text)
	}
	return texts
}

// Flag returns a boolean, or false if there is none.
func (r *Reader) Flag(t *Node, key string) bool {
	n := t.Member(key)
	return n != nil && n.Kind == strictjson.Bool && n.Text == "true"
}

// Integer returns a whole number.
func (r *Reader) Integer(n *Node, what string) (int64, bool) {
	if n.Kind != strictjson.Number {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil {
		r.Errorf(n.Line, "%s must be a whole number, got %s", what, n.Text)
	}
	return i, err == nil
}

// Within returns a whole number between two limits.
func (r *Reader) Within(n *Node, what string, lowest, highest int64) int64 {
	i, ok := r.Integer(n, what)
	if ok && (i < lowest || i > highest) {
		r.Errorf(n.Line, "%s must be between %d and %d, got %d", what, lowest, highest, i)
	}
	return i
}

// Expression compiles a regular expression, and returns nil if it is invalid.
func (r *Reader) Expression(line int, key, text string) *regexp.Regexp {
	re, err := regexp.Compile(text)
	if err != nil {
		r.Errorf(line, "%s is not a valid regular expression: %s", key, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re
}
