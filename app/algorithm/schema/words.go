package schema

import (
	"maps"
	"slices"
)

// word describes a JSON Schema keyword (2020-12): the kind of subschema it takes and the
// value types it constrains.
type word struct {
	below below
	types []string // empty means all
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

var words = map[string]*word{
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

// shapeWords are the keywords that define the form of a value on their own.
var shapeWords = []string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"}

var schemaTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// limits are pairs of keywords where the first must not exceed the second.
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

// IsWord reports whether name is a JSON Schema keyword.
func IsWord(name string) bool { return words[name] != nil }

// IsShape reports whether a keyword defines the form of a value on its own.
func IsShape(name string) bool { return slices.Contains(shapeWords, name) }

// Words returns the JSON Schema keywords, sorted.
func Words() []string { return slices.Sorted(maps.Keys(words)) }
