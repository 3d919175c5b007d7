package algorithm

import (
	"slices"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// FromText converts text, such as a table cell, to a value of the parameter: a number,
// boolean, array or object if the parameter accepts one, a list with one file if it
// accepts many files, and otherwise the text itself. If it accepts none of these,
// CheckSettings reports the error of the closest match.
func (p *Parameter) FromText(text string) *strictjson.Value {
	plain := quoted(text)
	v := unquoted(text)
	switch {
	case p.Many && v != nil && v.Kind == strictjson.Array:
		return v
	case p.Many:
		return listOf(plain)
	case v == nil || len(p.File) > 0:
		return plain
	case len(p.faults(v)) == 0:
		return v
	case len(p.faults(plain)) == 0, p.ofOtherType(v) && !p.ofOtherType(plain):
		return plain
	}
	return v
}

// TakesNumbers reports whether the parameter accepts numbers but not text.
func (p *Parameter) TakesNumbers() bool {
	return len(p.File) == 0 && !p.ofOtherType(unquoted("1")) && p.ofOtherType(quoted("a"))
}

// FromSequence converts a sequence to a value of the parameter: a list with one item if
// it accepts lists, otherwise a string.
func (p *Parameter) FromSequence(letters string) *strictjson.Value {
	plain := quoted(letters)
	list := listOf(plain)
	if p.ofOtherType(list) {
		return plain
	}
	return list
}

func listOf(one *strictjson.Value) *strictjson.Value {
	return &strictjson.Value{Kind: strictjson.Array, Items: []*strictjson.Value{one}, Raw: slices.Concat([]byte("["), one.Raw, []byte("]"))}
}

// ofOtherType reports whether the parameter does not accept values of this type.
func (p *Parameter) ofOtherType(v *strictjson.Value) bool {
	return slices.ContainsFunc(p.faults(v), func(f fault.Field) bool { return len(f.Loc) == 1 && f.Type == "type" })
}

func quoted(text string) *strictjson.Value {
	return &strictjson.Value{Kind: strictjson.String, Text: text, Raw: strictjson.AppendQuoted(nil, text)}
}

// unquoted parses text as a JSON number, boolean, array or object. It returns nil if the
// text is none of these. It accepts booleans in any case, because spreadsheets write
// TRUE.
func unquoted(text string) *strictjson.Value {
	if text == "" || !strings.Contains("-0123456789[{tTfF", text[:1]) {
		return nil
	}
	if word := strings.ToLower(text); word == "true" || word == "false" {
		return &strictjson.Value{Kind: strictjson.Bool, Text: word, Raw: []byte(word)}
	}
	v, err := strictjson.Parse([]byte(text))
	if err != nil {
		return nil
	}
	return v
}
