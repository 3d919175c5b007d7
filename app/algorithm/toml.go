package algorithm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"molrun/app/strictjson"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxAlgorithmFile bounds the size of an algorithm file.
const maxFile = 256 << 10

// tomlNode is a TOML value that knows its line and keeps the order of its
// keys and the digits of its numbers, neither of which a Go value does.
type tomlNode struct {
	kind    strictjson.Kind // Null stands for what JSON cannot say: dates, inf and nan
	line    int
	text    string // of a string, number or boolean, as in Value
	items   []*tomlNode
	members []tomlMember
}

type tomlMember struct {
	name  string
	line  int
	value *tomlNode
}

// member gives the value of a key, nil where there is none.
func (n *tomlNode) member(name string) *tomlNode {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// appendJSON appends the value as JSON.
func (n *tomlNode) appendJSON(b []byte) []byte {
	switch n.kind {
	case strictjson.Bool, strictjson.Number:
		return append(b, n.text...)
	case strictjson.String:
		return strictjson.AppendQuoted(b, n.text)
	case strictjson.Array:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case strictjson.Object:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strictjson.AppendQuoted(b, m.name), ':')
			b = m.value.appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// lineAt gives the line of the deepest value on a path of names and indexes.
func (n *tomlNode) lineAt(path []any) int {
	for _, step := range path {
		var next *tomlNode
		switch step := step.(type) {
		case string:
			next = n.member(step)
		case int:
			if step < len(n.items) {
				next = n.items[step]
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.line
}

// lastLine gives the line on which the last part of the value begins.
func (n *tomlNode) lastLine() int {
	last := n.line
	for _, item := range n.items {
		last = max(last, item.lastLine())
	}
	for _, m := range n.members {
		last = max(last, m.line, m.value.lastLine())
	}
	return last
}

// tomlReader builds the tree of one file and gathers its mistakes.
type tomlReader struct {
	parser   unstable.Parser
	newlines []int // offsets
	root     *tomlNode
	mistakes []Mistake
	headed   map[*tomlNode]bool // tables that a [header] has opened
}

// readTOML gives the tree of a file. A text that is no TOML has no tree.
func readTOML(text []byte) (*tomlNode, []Mistake) {
	if len(text) > maxFile {
		return nil, []Mistake{{Line: 1, Msg: fmt.Sprintf("the file has %d bytes; an algorithm file may have %d", len(text), maxFile)}}
	}
	r := tomlReader{root: &tomlNode{kind: strictjson.Object, line: 1}, headed: map[*tomlNode]bool{}}
	for i, c := range text {
		if c == '\n' {
			r.newlines = append(r.newlines, i)
		}
	}
	if i := invalidUTF8(text); i >= 0 {
		return nil, []Mistake{{Line: r.lineOf(i), Msg: "the text is not valid UTF-8"}}
	}
	if m, ok := r.read(text); !ok {
		return nil, []Mistake{m}
	}
	if m, ok := r.verify(text); !ok {
		r.mistakes = append(r.mistakes, m)
	}
	return r.root, r.mistakes
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// lineOf gives the line, from 1, of a byte of the text.
func (r *tomlReader) lineOf(offset int) int {
	n, _ := slices.BinarySearch(r.newlines, offset)
	return n + 1
}

func (r *tomlReader) mistake(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{Line: line, Msg: fmt.Sprintf(format, args...)})
}

// read walks the expressions of the file: headers move the current table,
// pairs are put into it.
func (r *tomlReader) read(text []byte) (Mistake, bool) {
	r.parser.Reset(text)
	table := r.root
	for r.parser.NextExpression() {
		switch n := r.parser.Expression(); n.Kind {
		case unstable.Table:
			table = r.openTable(n)
		case unstable.ArrayTable:
			table = r.openItem(n)
		case unstable.KeyValue:
			r.put(table, n)
		}
	}
	var fault *unstable.ParserError
	switch err := r.parser.Error(); {
	case err == nil:
		return Mistake{}, true
	case errors.As(err, &fault) && len(fault.Highlight) > 0:
		return Mistake{Line: r.lineOf(int(r.parser.Range(fault.Highlight).Offset)), Msg: "this is not TOML: " + fault.Message}, false
	default:
		return Mistake{Line: len(r.newlines) + 1, Msg: "this is not TOML: " + err.Error()}, false
	}
}

// verify has the library decode the file as well: it knows all rules on
// redefinition, of which this reader reports the common ones with both lines.
func (r *tomlReader) verify(text []byte) (Mistake, bool) {
	var all map[string]any
	err := toml.Unmarshal(text, &all)
	if err == nil || len(r.mistakes) > 0 {
		return Mistake{}, true
	}
	line := 1
	var fault *toml.DecodeError
	if errors.As(err, &fault) {
		line, _ = fault.Position()
	}
	return Mistake{Line: max(line, 1), Msg: "this is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}, false
}

type tomlKey struct {
	name string
	line int
}

func (r *tomlReader) keys(n *unstable.Node) []tomlKey {
	var keys []tomlKey
	for it := n.Key(); it.Next(); {
		keys = append(keys, tomlKey{string(it.Node().Data), r.lineOf(int(it.Node().Raw.Offset))})
	}
	return keys
}

// descend gives the table under keys, made where it is missing; of an array
// of tables it is the last one.
func (r *tomlReader) descend(t *tomlNode, keys []tomlKey) *tomlNode {
	for _, k := range keys {
		next := t.member(k.name)
		if next == nil {
			next = &tomlNode{kind: strictjson.Object, line: k.line}
			t.members = append(t.members, tomlMember{k.name, k.line, next})
		}
		if next.kind == strictjson.Array && len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		if next.kind != strictjson.Object {
			r.mistake(k.line, "%q is no table: line %d gives it another value", k.name, next.line)
			return &tomlNode{kind: strictjson.Object, line: k.line}
		}
		t = next
	}
	return t
}

func (r *tomlReader) openTable(n *unstable.Node) *tomlNode {
	keys := r.keys(n)
	t := r.descend(r.root, keys)
	if last := keys[len(keys)-1]; r.headed[t] {
		r.mistake(last.line, "[%s] is there twice, first at line %d: put all its keys under one", last.name, t.line)
	}
	if !r.headed[t] && len(t.members) == 0 {
		t.line = keys[len(keys)-1].line
	}
	r.headed[t] = true
	return t
}

func (r *tomlReader) openItem(n *unstable.Node) *tomlNode {
	keys := r.keys(n)
	last := keys[len(keys)-1]
	parent := r.descend(r.root, keys[:len(keys)-1])
	list := parent.member(last.name)
	if list == nil {
		list = &tomlNode{kind: strictjson.Array, line: last.line}
		parent.members = append(parent.members, tomlMember{last.name, last.line, list})
	}
	item := &tomlNode{kind: strictjson.Object, line: last.line}
	if list.kind != strictjson.Array {
		r.mistake(last.line, "[[%s]] is no list: line %d writes it in another way", last.name, list.line)
		return item
	}
	list.items = append(list.items, item)
	r.headed[item] = true
	return item
}

func (r *tomlReader) put(t *tomlNode, n *unstable.Node) {
	keys := r.keys(n)
	last := keys[len(keys)-1]
	t = r.descend(t, keys[:len(keys)-1])
	if old := t.member(last.name); old != nil {
		r.mistake(last.line, "%q is there twice, first at line %d: keep one", last.name, old.line)
		return
	}
	t.members = append(t.members, tomlMember{last.name, last.line, r.value(n.Value(), last.line)})
}

// value gives a node's value; line is that of its key, for nodes without one.
func (r *tomlReader) value(n *unstable.Node, line int) *tomlNode {
	if n.Raw.Length > 0 {
		line = r.lineOf(int(n.Raw.Offset))
	}
	v := &tomlNode{line: line}
	switch n.Kind {
	case unstable.String:
		v.kind, v.text = strictjson.String, string(n.Data)
	case unstable.Bool:
		v.kind, v.text = strictjson.Bool, string(n.Data)
	case unstable.Integer, unstable.Float:
		v.text = jsonNumber(string(n.Data))
		if v.kind = strictjson.Number; v.text == "" {
			v.kind = strictjson.Null
			r.mistake(line, "the number %s is out of range", n.Data)
		}
	case unstable.Array:
		v.kind = strictjson.Array
		for it := n.Children(); it.Next(); {
			v.items = append(v.items, r.value(it.Node(), line))
		}
	case unstable.InlineTable:
		v.kind = strictjson.Object
		for it := n.Children(); it.Next(); {
			r.put(v, it.Node())
		}
	default:
		r.mistake(line, "write a date or time as text, in quotes: %q", n.Data)
	}
	return v
}

// jsonNumber gives a TOML number as JSON writes it, "" where JSON cannot.
func jsonNumber(text string) string {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
	if len(text) > 1 && text[0] == '0' && strings.ContainsRune("xob", rune(text[1])) {
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || !strictjson.ExactNumber(text) {
		return ""
	}
	return text
}
