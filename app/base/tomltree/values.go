package tomltree

import (
	"regexp"
	"strconv"
	"strings"

	"molrun/app/base/strictjson"
)

// Table returns the table under key, nil if there is none.
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

// Text reads a text, "" if there is none.
func (r *Reader) Text(t *Node, key string) string {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.String {
		return ""
	}
	if strings.ContainsRune(n.Text, 0) {
		r.Mistakef(n.Line, "%s must not contain a NUL character", key)
	}
	return n.Text
}

// Line reads a text that is shown on one line.
func (r *Reader) Line(t *Node, key string) string {
	s := r.Text(t, key)
	if strings.ContainsAny(s, "\r\n") {
		r.Mistakef(t.Member(key).Line, "%s must be one line", key)
	}
	return s
}

// Texts reads a list of texts. It has an element for each of the list's items,
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

// Flag reads true or false; false if there is neither.
func (r *Reader) Flag(t *Node, key string) bool {
	n := t.Member(key)
	return n != nil && n.Kind == strictjson.Bool && n.Text == "true"
}

// Integer reads a whole number.
func (r *Reader) Integer(n *Node, what string) (int64, bool) {
	if n.Kind != strictjson.Number {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil {
		r.Mistakef(n.Line, "%s must be a whole number, got %s", what, n.Text)
	}
	return i, err == nil
}

// Within reads a whole number between two limits.
func (r *Reader) Within(n *Node, what string, lowest, highest int64) int64 {
	i, ok := r.Integer(n, what)
	if ok && (i < lowest || i > highest) {
		r.Mistakef(n.Line, "%s must be between %d and %d, got %d", what, lowest, highest, i)
	}
	return i
}

// Expression compiles a regular expression, nil if it is wrong.
func (r *Reader) Expression(line int, key, text string) *regexp.Regexp {
	re, err := regexp.Compile(text)
	if err != nil {
		r.Mistakef(line, "%s is no regular expression: %s", key, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re
}
