package contract

import (
	"os"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestDescriptionIsAsGeneratorsReadIt rejects constructs that common client generators
// misread. It does not run the generators.
func TestDescriptionIsAsGeneratorsReadIt(t *testing.T) {
	text, err := os.ReadFile("../../../web/openapi.yaml")
	must.OK(t, err)
	checker, err := New(text)
	must.OK(t, err)
	for place, wrong := range misread(checker.Spec) {
		t.Errorf("%s %s", place, wrong)
	}
}

func TestMisreadDescriptionsAreFound(t *testing.T) {
	for want, schema := range map[string]string{
		"has several types; use oneOf":                         "{type: [integer, string]}",
		"is an object without members; say which it may have":  "{type: object}",
		"has a constant or enumeration without a type":         "{enum: [a]}",
		"has a default, so that clients would have to send it": "{type: object, properties: {a: {type: string, default: b}}}",
		"has only a few items for generators; use items":       "{type: array, prefixItems: [{type: string}], items: {type: string}}",
		"has the name of another component of the description": "{type: string}",
	} {
		name := "A"
		if strings.Contains(want, "name of another") {
			name = "B"
		}
		spec, err := Parse([]byte("components: {schemas: {" + name + ": " + schema + "}, parameters: {B: {name: b, in: query, schema: {type: string, default: c}}}}"))
		must.OK(t, err)
		var got []string
		for _, wrong := range misread(spec) {
			got = append(got, wrong)
		}
		must.Equal(t, schema, got, []string{want})
	}
}

// misread returns the constructs that generators misread, by location.
func misread(s *Spec) map[string]string {
	found := map[string]string{}
	kinds := map[string]string{}
	for _, kind := range sortedKeys(s.at("components")) {
		for _, name := range sortedKeys(s.at("components", kind)) {
			if _, taken := kinds[name]; taken {
				found["components/"+kind+"/"+name] = "has the name of another component of the description"
			}
			kinds[name] = kind
		}
	}
	walkSchemas(s.root, "", func(place string, schema map[string]any) {
		if wrong := misreadSchema(schema); wrong != "" {
			found[place] = wrong
		}
	})
	return found
}

func misreadSchema(schema map[string]any) string {
	has := func(name string) bool { _, ok := schema[name]; return ok }
	types, several := schema["type"].([]any)
	if several {
		types = slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" })
	}
	object := schema["type"] == "object" || slices.Contains(types, any("object"))
	properties, _ := schema["properties"].(map[string]any)
	for _, member := range properties {
		if m, _ := member.(map[string]any); m["default"] != nil {
			return "has a default, so that clients would have to send it"
		}
	}
	switch {
	case len(types) > 1:
		return "has several types; use oneOf"
	case object && !has("properties") && !has("additionalProperties") && !has("maxProperties"):
		return "is an object without members; say which it may have"
	case (has("enum") || has("const")) && !has("type"):
		return "has a constant or enumeration without a type"
	case has("prefixItems"):
		return "has only a few items for generators; use items"
	}
	return ""
}

// walkSchemas visits every schema below a value. It skips schemas that only narrow
// others, and examples, which generators ignore.
func walkSchemas(value any, place string, visit func(string, map[string]any)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			walkSchemas(item, place, visit)
		}
	case map[string]any:
		_, typed := value["type"].(string)
		_, union := value["type"].([]any)
		if typed || union || value["enum"] != nil || value["const"] != nil || value["properties"] != nil {
			visit(place, value)
		}
		for _, name := range sortedKeys(value) {
			if !slices.Contains([]string{"example", "examples", "contains", "propertyNames", "securitySchemes"}, name) {
				walkSchemas(value[name], place+"/"+name, visit)
			}
		}
	}
}
