// Package schema compiles JSON Schemas (draft 2020-12) written in TOML, checks values
// against them, and explains each error in one sentence.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// Schema is a compiled JSON Schema.
type Schema struct {
	compiled  *jsonschema.Schema
	words     map[string]any
	types     []string // declared by the schema
	takesNull bool
}

// url names a schema during compilation; nothing is loaded from it.
const url = "urn:molrun:parameter"

// noLoader refuses to load any external schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not in this file", url)
}

// Compile compiles a schema. The path of an error leads to the invalid keyword.
func Compile(text json.RawMessage) (*Schema, []fault.Field) {
	v, err := strictjson.Parse(text)
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) {
			return nil, e.Fields
		}
		return nil, []fault.Field{{Msg: err.Error()}}
	}
	doc := v.Any()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(url, doc); err != nil {
		return nil, []fault.Field{{Msg: err.Error()}}
	}
	compiled, err := c.Compile(url)
	var invalid *jsonschema.SchemaValidationError
	var cause *jsonschema.ValidationError
	switch {
	case err == nil:
		words, _ := doc.(map[string]any)
		return &Schema{compiled, words, typesOf(words), compiled.Validate(nil) == nil}, nil
	case errors.As(err, &invalid) && errors.As(invalid.Err, &cause):
		return nil, sentences(cause, v, "")
	}
	return nil, []fault.Field{{Msg: "the schema cannot be used: " + strings.ReplaceAll(err.Error(), url, "")}}
}

// Type returns the schema's "type" keyword: a name, a list, or nil.
func (s *Schema) Type() any { return s.words["type"] }

// IsOneOf reports whether the schema declares exactly one type and it is among types.
func (s *Schema) IsOneOf(types ...string) bool {
	return s != nil && len(s.types) == 1 && overlap(s.types, types)
}

// AcceptsNull reports whether the schema accepts null.
func (s *Schema) AcceptsNull() bool { return s != nil && s.takesNull }

// Minimum returns the smallest number that the schema allows, in plain decimal notation. ok
// is false if the schema sets no lower limit.
func (s *Schema) Minimum() (digits string, ok bool) {
	least := new(big.Rat)
	if s.compiled.Minimum != nil {
		least, ok = s.compiled.Minimum, true
	}
	if s.compiled.Enum != nil {
		for i, choice := range s.compiled.Enum.Values {
			n, isNumber := new(big.Rat).SetString(fmt.Sprint(choice))
			if isNumber && (i == 0 || n.Cmp(least) < 0) {
				least, ok = n, true
			}
		}
	}
	return decimalText(least), ok
}

// typesOf returns the types that a schema declares.
func typesOf(words map[string]any) []string {
	switch t := words["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var types []string
		for _, item := range t {
			if s, ok := item.(string); ok {
				types = append(types, s)
			}
		}
		return types
	}
	return nil
}
