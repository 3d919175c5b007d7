package algorithm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"molrun/app/nearest"
	"molrun/app/strictjson"
)

// schemaWord says of a word of JSON Schema (2020-12) what kind of schema
// stands below it and of which types of values it speaks.
type schemaWord struct {
	below below
	types []string // none: of all
}

type below byte

const (
	noSchema below = iota
	oneSchema
	schemaList
	schemaMap
)

var (
	ofNumbers = []string{"number", "integer"}
	ofStrings = []string{"string"}
	ofArrays  = []string{"array"}
	ofObjects = []string{"object"}
)

var schemaWords = map[string]*schemaWord{
	"type": {}, "enum": {}, "const": {}, "format": {},
	"title": {}, "description": {}, "default": {}, "examples": {},
	"deprecated": {}, "readOnly": {}, "writeOnly": {},
	"$ref": {}, "$anchor": {}, "$dynamicRef": {}, "$dynamicAnchor": {}, "$comment": {},
	"$defs": {below: schemaMap},

	"minimum": {types: ofNumbers}, "maximum": {types: ofNumbers}, "multipleOf": {types: ofNumbers},
	"exclusiveMinimum": {types: ofNumbers}, "exclusiveMaximum": {types: ofNumbers},

	"minLength": {types: ofStrings}, "maxLength": {types: ofStrings}, "pattern": {types: ofStrings},
	"contentEncoding": {types: ofStrings}, "contentMediaType": {types: ofStrings},
	"contentSchema": {oneSchema, ofStrings},

	"minItems": {types: ofArrays}, "maxItems": {types: ofArrays}, "uniqueItems": {types: ofArrays},
	"minContains": {types: ofArrays}, "maxContains": {types: ofArrays},
	"items": {oneSchema, ofArrays}, "contains": {oneSchema, ofArrays},
	"unevaluatedItems": {oneSchema, ofArrays}, "prefixItems": {schemaList, ofArrays},

	"minProperties": {types: ofObjects}, "maxProperties": {types: ofObjects},
	"required": {types: ofObjects}, "dependentRequired": {types: ofObjects},
	"additionalProperties": {oneSchema, ofObjects}, "propertyNames": {oneSchema, ofObjects},
	"unevaluatedProperties": {oneSchema, ofObjects}, "properties": {schemaMap, ofObjects},
	"patternProperties": {schemaMap, ofObjects}, "dependentSchemas": {schemaMap, ofObjects},

	"allOf": {below: schemaList}, "anyOf": {below: schemaList}, "oneOf": {below: schemaList},
	"not": {below: oneSchema}, "if": {below: oneSchema}, "then": {below: oneSchema}, "else": {below: oneSchema},
}

// shapeWords say by themselves what a value looks like.
var shapeWords = []string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"}

var schemaTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// limits are pairs of words of which the first may not exceed the second.
var limits = [][2]string{
	{"minimum", "maximum"},
	{"minimum", "exclusiveMaximum"},
	{"exclusiveMinimum", "maximum"},
	{"exclusiveMinimum", "exclusiveMaximum"},
	{"minLength", "maxLength"},
	{"minItems", "maxItems"},
	{"minProperties", "maxProperties"},
	{"minContains", "maxContains"},
}

// schemaWords notes words that JSON Schema does not know or that have no
// effect where they stand, in a schema and all those below it. The library
// passes over them in silence, and so would a limit with a typing error.
func (r *reader) schemaWords(schema *tomlNode, also []string) {
	types := r.types(schema.member("type"))
	for _, m := range schema.members {
		word := schemaWords[m.name]
		if word == nil {
			r.unknownWord(m, also)
			continue
		}
		if len(types) > 0 && len(word.types) > 0 && !overlap(types, word.types) {
			r.mistake(m.line, "%s says nothing about a value of type %s: remove it or change the type", m.name, strings.Join(types, " or "))
		}
		r.wordValue(m)
		for _, below := range schemasBelow(word.below, m.value) {
			r.schemaWords(below, nil)
		}
	}
	r.limits(schema)
}

func (r *reader) unknownWord(m tomlMember, also []string) {
	known := append(slices.Sorted(maps.Keys(schemaWords)), also...)
	if near := nearest.Of(m.name, known); near != "" {
		r.mistake(m.line, "unknown key %q; did you mean %q?", m.name, near)
		return
	}
	r.mistake(m.line, "unknown key %q: it is neither a parameter's own (%s) nor a word of JSON Schema", m.name, strings.Join(parameterKeys, ", "))
}

// types gives the types that a schema allows, none where it does not say.
func (r *reader) types(n *tomlNode) []string {
	if n == nil {
		return nil
	}
	items := []*tomlNode{n}
	if n.kind == strictjson.Array {
		items = n.items
	}
	var types []string
	for _, item := range items {
		switch {
		case item.kind != strictjson.String:
			r.is(item, "type", strictjson.String)
		case !slices.Contains(schemaTypes, item.text):
			msg := "unknown type " + strconv.Quote(item.text)
			if near := nearest.Of(item.text, schemaTypes); near != "" {
				msg += fmt.Sprintf("; did you mean %q?", near)
			} else {
				msg += ": use " + orList(schemaTypes)
			}
			r.mistake(item.line, "%s", msg)
		default:
			types = append(types, item.text)
		}
	}
	return types
}

// wordValue notes regular expressions that cannot be read.
func (r *reader) wordValue(m tomlMember) {
	switch {
	case m.name == "pattern" && m.value.kind == strictjson.String:
		r.expression(m.value.line, "pattern", m.value.text)
	case m.name == "patternProperties" && m.value.kind == strictjson.Object:
		for _, p := range m.value.members {
			r.expression(p.line, "pattern", p.name)
		}
	}
}

// expression compiles a regular expression, nil where it is wrong.
func (r *reader) expression(line int, key, text string) *regexp.Regexp {
	re, err := regexp.Compile(text)
	if err != nil {
		r.mistake(line, "%s is no regular expression: %s", key, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re
}

func (r *reader) limits(schema *tomlNode) {
	for _, pair := range limits {
		low, high := schema.member(pair[0]), schema.member(pair[1])
		if low == nil || high == nil || low.kind != strictjson.Number || high.kind != strictjson.Number {
			continue
		}
		x, _ := strconv.ParseFloat(low.text, 64)
		y, _ := strconv.ParseFloat(high.text, 64)
		if x > y {
			r.mistake(low.line, "%s %s is above %s %s: no value can pass", pair[0], low.text, pair[1], high.text)
		}
	}
}

func schemasBelow(kind below, n *tomlNode) []*tomlNode {
	var all []*tomlNode
	switch kind {
	case oneSchema:
		all = append(all, n)
	case schemaList:
		all = n.items
	case schemaMap:
		for _, m := range n.members {
			all = append(all, m.value)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(n *tomlNode) bool { return n.kind != strictjson.Object })
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
