package schema

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// Check returns every error in a value. unit is shown next to its limits; paths are
// relative to the value.
func (s *Schema) Check(v *strictjson.Value, unit string) []fault.Field {
	var faults []fault.Field
	var invalid *jsonschema.ValidationError
	if errors.As(s.compiled.Validate(v.Any()), &invalid) {
		faults = sentences(invalid, v, unit)
	}
	faults = appendTextFaults(faults, v, nil)
	if len(faults) == 0 {
		faults = appendIntegerFaults(faults, v, s.words, nil)
	}
	return faults
}

// appendTextFaults rejects NUL characters, which arguments, environment variables and
// file names cannot contain.
func appendTextFaults(faults []fault.Field, v *strictjson.Value, path []any) []fault.Field {
	if v.Kind == strictjson.String && strings.ContainsRune(v.Text, 0) {
		return append(faults, fault.Field{Loc: append([]any{}, path...), Msg: "must not contain a NUL character", Type: "value"})
	}
	for i, item := range v.Items {
		faults = appendTextFaults(faults, item, append(slices.Clip(path), i))
	}
	for _, m := range v.Members {
		if strings.ContainsRune(m.Name, 0) {
			faults = append(faults, fault.Field{Loc: append(append([]any{}, path...), m.Name), Msg: "must not have a NUL character in its name", Type: "value"})
			continue
		}
		faults = appendTextFaults(faults, m.Value, append(slices.Clip(path), m.Name))
	}
	return faults
}

// appendIntegerFaults rejects integers outside ±2^53, which many programs would round,
// unless the schema sets its own limits.
func appendIntegerFaults(faults []fault.Field, v *strictjson.Value, schema map[string]any, path []any) []fault.Field {
	switch v.Kind {
	case strictjson.Array:
		items, _ := schema["items"].(map[string]any)
		for i, item := range v.Items {
			faults = appendIntegerFaults(faults, item, items, append(slices.Clip(path), i))
		}
	case strictjson.Number:
		if _, ok := v.Int(); !ok && wantsPlainInteger(schema) {
			return append(faults, fault.Field{Loc: append([]any{}, path...), Msg: "must be within ±9007199254740992 (2^53), got " + ShortValue(v), Type: "value"})
		}
	}
	return faults
}

// wantsPlainInteger reports whether a schema requires an integer without limiting its
// size.
func wantsPlainInteger(schema map[string]any) bool {
	types := typesOf(schema)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return schema[w] != nil })
	}
	limited := has("minimum", "exclusiveMinimum") && has("maximum", "exclusiveMaximum") || has("enum", "const")
	return slices.Contains(types, "integer") && !slices.Contains(types, "number") && !limited
}

// Path formats a path below settings in the usual notation, such as sequences[3].name.
func Path(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}
