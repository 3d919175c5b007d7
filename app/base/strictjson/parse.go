// Package strictjson reads JSON exactly: one document, no duplicate members, no lone
// surrogates, numbers as written. It also writes JSON in canonical form.
package strictjson

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"molrun/app/base/fault"
)

// Kind is the kind of a JSON value.
type Kind byte

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// The default limits of a JSON document.
const (
	maxDepth        = 64
	maxNumberLength = 64
	maxMembers      = 10_000    // per object
	maxValues       = 1_000_000 // per document; each takes about 150 bytes of memory
)

// Limits limits a JSON document. The API promises to accept documents within the default
// limits; a site can set lower ones.
type Limits struct {
	Depth        int // levels of nesting
	Members      int // per object
	NumberLength int // characters
}

// DefaultLimits returns the limits of Parse.
func DefaultLimits() Limits { return Limits{maxDepth, maxMembers, maxNumberLength} }

// Value is a JSON value that preserves how it was written.
type Value struct {
	Kind    Kind
	Raw     []byte // as sent
	Text    string // value of a string, literal of a number, or true or false
	Items   []*Value
	Members []Member
}

// Member is a name and value of an object.
type Member struct {
	Name  string
	Value *Value
}

// Member returns the value of an object's member, or nil if there is none.
func (v *Value) Member(name string) *Value {
	for i := range v.Members {
		if v.Members[i].Name == name {
			return v.Members[i].Value
		}
	}
	return nil
}

// Any returns the same Go value as encoding/json with UseNumber.
func (v *Value) Any() any {
	switch v.Kind {
	case Bool:
		return v.Text == "true"
	case Number:
		return json.Number(v.Text)
	case String:
		return v.Text
	case Array:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = item.Any()
		}
		return items
	case Object:
		members := make(map[string]any, len(v.Members))
		for _, m := range v.Members {
			members[m.Name] = m.Value.Any()
		}
		return members
	}
	return nil
}

// Parse reads exactly one JSON document, more strictly than encoding/json: UTF-8 without
// lone surrogates, no duplicate members, at most 64 levels and 10,000 members per object,
// numbers of at most 64 characters that a float64 can hold. The error is an Invalid whose
// path starts with loc.
func Parse(data []byte, loc ...any) (*Value, error) {
	return DefaultLimits().Parse(data, loc...)
}

// Parse is like the function Parse, with other limits.
func (l Limits) Parse(data []byte, loc ...any) (*Value, error) {
	p := parser{limits: l, data: data, loc: slices.Clone(loc)}
	if !utf8.Valid(data) {
		return nil, p.fault("json", "the text is not valid UTF-8")
	}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(data) {
		return nil, p.fault("json", "send one JSON document: there is extra data after its end at byte %d", p.at)
	}
	return v, nil
}

// parser holds a document, the position in it and the path of the value being read.
type parser struct {
	limits Limits
	data   []byte
	at     int
	loc    []any
	values int // read so far
}

func (p *parser) fault(kind, format string, args ...any) error {
	return fault.List(fault.Field{Loc: slices.Clone(p.loc), Msg: fmt.Sprintf(format, args...), Type: kind})
}

func (p *parser) unexpected(want string) error {
	if p.at >= len(p.data) {
		return p.fault("json", "the JSON ends at byte %d where %s is expected", p.at, want)
	}
	r, _ := utf8.DecodeRune(p.data[p.at:])
	return p.fault("json", "expected %s at byte %d, got %q", want, p.at, r)
}

func (p *parser) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

func (p *parser) value(depth int) (*Value, error) {
	p.space()
	if depth >= p.limits.Depth {
		return nil, p.fault("json", "the JSON is nested more than %d levels deep", p.limits.Depth)
	}
	if p.values++; p.values > maxValues {
		return nil, p.fault("json", "the JSON has more than %d values", maxValues)
	}
	start := p.at
	v := &Value{}
	var err error
	switch c := p.peek(); {
	case c == '{':
		err = p.object(v, depth)
	case c == '[':
		err = p.array(v, depth)
	case c == '"':
		v.Kind = String
		v.Text, err = p.readString()
	case c == '-' || '0' <= c && c <= '9':
		v.Kind = Number
		v.Text, err = p.number()
	default:
		err = p.word(v)
	}
	if err != nil {
		return nil, err
	}
	v.Raw = p.data[start:p.at]
	return v, nil
}

func (p *parser) word(v *Value) error {
	rest := p.data[p.at:]
	for _, word := range [...]string{"true", "false", "null"} {
		if len(rest) >= len(word) && string(rest[:len(word)]) == word {
			p.at += len(word)
			if word != "null" {
				v.Kind, v.Text = Bool, word
			}
			return nil
		}
	}
	return p.unexpected("a JSON value")
}

func (p *parser) object(v *Value, depth int) error {
	v.Kind = Object
	seen := map[string]bool{}
	p.at++
	if p.space(); p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		if p.space(); p.peek() != '"' {
			return p.unexpected("a member's name in quotes")
		}
		name, err := p.readString()
		if err != nil {
			return err
		}
		p.loc = append(p.loc, name)
		if seen[name] {
			return p.fault("duplicate", "the member %q occurs twice; send it once", name)
		}
		if seen[name] = true; len(seen) > p.limits.Members {
			return p.fault("json", "an object has more than %d members", p.limits.Members)
		}
		if p.space(); p.peek() != ':' {
			return p.unexpected(`":"`)
		}
		p.at++
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		p.loc = p.loc[:len(p.loc)-1]
		v.Members = append(v.Members, Member{name, value})
		if done, err := p.nextElement('}'); done || err != nil {
			return err
		}
	}
}

func (p *parser) array(v *Value, depth int) error {
	v.Kind = Array
	p.at++
	if p.space(); p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		p.loc = append(p.loc, len(v.Items))
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		p.loc = p.loc[:len(p.loc)-1]
		v.Items = append(v.Items, item)
		if done, err := p.nextElement(']'); done || err != nil {
			return err
		}
	}
}

// nextElement reads the comma before another element, or the closing bracket.
func (p *parser) nextElement(closing byte) (done bool, err error) {
	p.space()
	switch p.peek() {
	case ',':
		p.at++
		return false, nil
	case closing:
		p.at++
		return true, nil
	}
	return false, p.unexpected(fmt.Sprintf(`"," or %q`, closing))
}

func (p *parser) readString() (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			return string(p.data[start : p.at-1]), nil
		case c == '\\':
			return p.escapedText(start)
		case c < 0x20:
			return "", p.fault("json", "a control character in a string at byte %d must be escaped", p.at)
		}
		p.at++
	}
	return "", p.unexpected("the end of a string")
}

// escapedText reads the string that starts at start and has its first escape at p.at.
func (p *parser) escapedText(start int) (string, error) {
	b := append([]byte(nil), p.data[start:p.at]...)
	for p.at < len(p.data) {
		c := p.data[p.at]
		p.at++
		switch {
		case c == '"':
			return string(b), nil
		case c < 0x20:
			return "", p.fault("json", "a control character in a string at byte %d must be escaped", p.at-1)
		case c != '\\':
			b = append(b, c)
		default:
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return "", p.unexpected("the end of a string")
}

var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads the rest of an escape sequence after the backslash.
func (p *parser) escape() (rune, error) {
	c := p.peek()
	if r, ok := escapes[c]; ok {
		p.at++
		return r, nil
	}
	if c != 'u' {
		return 0, p.unexpected("an escape")
	}
	r, err := p.hex()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if strings.HasPrefix(string(p.data[p.at:min(p.at+2, len(p.data))]), `\u`) {
		p.at++
		low, err := p.hex()
		if err != nil {
			return 0, err
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, p.fault("json", "a \\u escape before byte %d is half a surrogate pair", p.at)
}

// hex reads "u" and four hexadecimal digits.
func (p *parser) hex() (rune, error) {
	if p.at+5 > len(p.data) {
		p.at = len(p.data)
		return 0, p.unexpected("four hexadecimal digits")
	}
	n, err := strconv.ParseUint(string(p.data[p.at+1:p.at+5]), 16, 16)
	if err != nil {
		return 0, p.unexpected("four hexadecimal digits")
	}
	p.at += 5
	return rune(n), nil
}

func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.data) && '0' <= p.data[p.at] && p.data[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

func (p *parser) number() (string, error) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if p.digits() == 0 {
		return "", p.unexpected("a digit")
	}
	if p.peek() == '.' {
		p.at++
		if p.digits() == 0 {
			return "", p.unexpected("a digit")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if p.digits() == 0 {
			return "", p.unexpected("a digit")
		}
	}
	text := string(p.data[start:p.at])
	if len(text) > p.limits.NumberLength {
		return "", p.fault("value", "a number has more than %d characters", p.limits.NumberLength)
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || !smallExponent(text) {
		return "", p.fault("value", "the number %s is out of range (%g)", text, f)
	}
	return text, nil
}

// ExactNumber reports whether a number that a float64 can hold is short enough
// for exact arithmetic.
func ExactNumber(text string) bool {
	return len(text) <= maxNumberLength && smallExponent(text)
}

// smallExponent reports whether exact arithmetic with a number is feasible. It would need
// gigabytes for numbers such as 1e-1000000000, which is simply 0 as a float64.
func smallExponent(number string) bool {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	n, err := strconv.Atoi(number[i+1:])
	return err == nil && -400 < n && n < 400
}
