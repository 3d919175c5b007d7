package tomltree

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"molrun/app/base/strictjson"
)

// Parse reads a file. If the text is not TOML, it returns a Reader without a Root.
func Parse(text []byte) *Reader {
	root := &Node{Kind: strictjson.Object, Line: 1}
	r := &Reader{}
	p := parser{Reader: r, tree: root, headed: map[*Node]bool{}}
	for i, c := range text {
		if c == '\n' {
			p.newlines = append(p.newlines, i)
		}
	}
	if i := invalidUTF8(text); i >= 0 {
		r.Errorf(p.lineOf(i), "the text is not valid UTF-8")
		return r
	}
	if !p.parse(text) {
		r.mistakes = r.mistakes[len(r.mistakes)-1:] // earlier errors are consequences of this one
		return r
	}
	if len(r.mistakes) == 0 {
		p.verify(text)
	}
	r.Root = root
	return r
}

// parser builds the tree of one file.
type parser struct {
	*Reader
	toml     unstable.Parser
	newlines []int // offsets
	tree     *Node
	headed   map[*Node]bool // tables opened by a [header]
}

// lineOf returns the line number, from 1, of a byte of the text.
func (p *parser) lineOf(offset int) int {
	n, _ := slices.BinarySearch(p.newlines, offset)
	return n + 1
}

// parse processes the expressions of the file: headers change the current table, and
// pairs are added to it. It reports whether the text is TOML.
func (p *parser) parse(text []byte) bool {
	p.toml.Reset(text)
	table := p.tree
	for p.toml.NextExpression() {
		switch n := p.toml.Expression(); n.Kind {
		case unstable.Table:
			table = p.openTable(n)
		case unstable.ArrayTable:
			table = p.openItem(n)
		case unstable.KeyValue:
			p.put(table, n)
		}
	}
	var fault *unstable.ParserError
	switch err := p.toml.Error(); {
	case err == nil:
		return true
	case errors.As(err, &fault) && len(fault.Highlight) > 0:
		p.Errorf(p.lineOf(int(p.toml.Range(fault.Highlight).Offset)), "this is not TOML: %s", fault.Message)
	default:
		p.Errorf(len(p.newlines)+1, "this is not TOML: %v", err)
	}
	return false
}

// verify also decodes the file with the library, which knows every rule about
// redefinition. The parser reports the common violations with both lines.
func (p *parser) verify(text []byte) {
	var all map[string]any
	err := toml.Unmarshal(text, &all)
	if err == nil {
		return
	}
	line := 1
	var fault *toml.DecodeError
	if errors.As(err, &fault) {
		line, _ = fault.Position()
	}
	p.Errorf(max(line, 1), "this is not TOML: %s", strings.TrimPrefix(err.Error(), "toml: "))
}

type keyPart struct {
	name string
	line int
}

func (p *parser) keys(n *unstable.Node) []keyPart {
	var keys []keyPart
	for it := n.Key(); it.Next(); {
		keys = append(keys, keyPart{string(it.Node().Data), p.lineOf(int(it.Node().Raw.Offset))})
	}
	return keys
}

// descend returns the table under keys and creates missing ones. In an array of tables it
// uses the last.
func (p *parser) descend(t *Node, keys []keyPart) *Node {
	for _, k := range keys {
		next := t.Member(k.name)
		if next == nil {
			next = &Node{Kind: strictjson.Object, Line: k.line}
			t.Members = append(t.Members, Member{k.name, k.line, next})
		}
		if next.Kind == strictjson.Array && len(next.Items) > 0 {
			next = next.Items[len(next.Items)-1]
		}
		if next.Kind != strictjson.Object {
			p.Errorf(k.line, "%q is not a table: line %d gives it another value", k.name, next.Line)
			return &Node{Kind: strictjson.Object, Line: k.line}
		}
		t = next
	}
	return t
}

func (p *parser) openTable(n *unstable.Node) *Node {
	keys := p.keys(n)
	t := p.descend(p.tree, keys)
	if last := keys[len(keys)-1]; p.headed[t] {
		p.Errorf(last.line, "[%s] is defined twice, first on line %d: put all its keys under one", last.name, t.Line)
	}
	if !p.headed[t] && len(t.Members) == 0 {
		t.Line = keys[len(keys)-1].line
	}
	p.headed[t] = true
	return t
}

func (p *parser) openItem(n *unstable.Node) *Node {
	keys := p.keys(n)
	last := keys[len(keys)-1]
	parent := p.descend(p.tree, keys[:len(keys)-1])
	list := parent.Member(last.name)
	if list == nil {
		list = &Node{Kind: strictjson.Array, Line: last.line}
		parent.Members = append(parent.Members, Member{last.name, last.line, list})
	}
	item := &Node{Kind: strictjson.Object, Line: last.line}
	if list.Kind != strictjson.Array {
		p.Errorf(last.line, "[[%s]] is not a list: line %d defines it differently", last.name, list.Line)
		return item
	}
	list.Items = append(list.Items, item)
	p.headed[item] = true
	return item
}

func (p *parser) put(t *Node, n *unstable.Node) {
	keys := p.keys(n)
	last := keys[len(keys)-1]
	t = p.descend(t, keys[:len(keys)-1])
	if old := t.Member(last.name); old != nil {
		p.Errorf(last.line, "%q is defined twice, first on line %d: keep one", last.name, old.Line)
		return
	}
	t.Members = append(t.Members, Member{last.name, last.line, p.value(n.Value(), last.line)})
}

// value converts a node. line is the line of its key, for nodes without a position.
func (p *parser) value(n *unstable.Node, line int) *Node {
	if n.Raw.Length > 0 {
		line = p.lineOf(int(n.Raw.Offset))
	}
	v := &Node{Line: line}
	switch n.Kind {
	case unstable.String:
		v.Kind, v.Text = strictjson.String, string(n.Data)
	case unstable.Bool:
		v.Kind, v.Text = strictjson.Bool, string(n.Data)
	case unstable.Integer, unstable.Float:
		v.Text = jsonNumber(string(n.Data))
		if v.Kind = strictjson.Number; v.Text == "" {
			v.Kind = strictjson.Null
			p.Errorf(line, "the number %s is out of range", n.Data)
		}
	case unstable.Array:
		v.Kind = strictjson.Array
		for it := n.Children(); it.Next(); {
			v.Items = append(v.Items, p.value(it.Node(), line))
		}
	case unstable.InlineTable:
		v.Kind = strictjson.Object
		for it := n.Children(); it.Next(); {
			p.put(v, it.Node())
		}
	default:
		p.Errorf(line, "write a date or time as text, in quotes: %q", n.Data)
	}
	return v
}

// jsonNumber converts a TOML number to JSON, or returns "" if JSON has no such number.
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
