package schema

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// Limits on how much of an invalid value (characters) and of a list of choices (items) a
// message shows.
const (
	shownValue   = 40
	shownChoices = 12
)

// sentences turns the schema library's errors into one sentence each, written for the
// person filling in the form. Paths are relative to the value.
func sentences(err *jsonschema.ValidationError, v *strictjson.Value, unit string) []fault.Field {
	s := sentencer{root: v, unit: unit}
	s.addError(err)
	slices.SortStableFunc(s.faults, func(x, y fault.Field) int {
		return cmp.Or(comparePaths(x.Loc, y.Loc), cmp.Compare(x.Msg, y.Msg))
	})
	return slices.CompactFunc(s.faults, func(x, y fault.Field) bool {
		return comparePaths(x.Loc, y.Loc) == 0 && x.Msg == y.Msg
	})
}

type sentencer struct {
	root   *strictjson.Value
	unit   string
	faults []fault.Field
}

// locate returns the path of an error and the value it concerns.
func (s *sentencer) locate(steps []string) ([]any, *strictjson.Value) {
	path, v := []any{}, s.root
	for _, step := range steps {
		if v.Kind == strictjson.Array {
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v.Items) {
				return path, &strictjson.Value{}
			}
			path, v = append(path, i), v.Items[i]
			continue
		}
		path = append(path, step)
		if v = v.Member(step); v == nil {
			return path, &strictjson.Value{}
		}
	}
	return path, v
}

func (s *sentencer) fault(path []any, typ, format string, args ...any) {
	s.faults = append(s.faults, fault.Field{Loc: path, Msg: fmt.Sprintf(format, args...), Type: typ})
}

// addError collects the errors below err, skipping those that only group others.
func (s *sentencer) addError(err *jsonschema.ValidationError) {
	path, v := s.locate(err.InstanceLocation)
	switch k := err.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		s.alternatives(err, path, v)
	case *kind.Required:
		for _, name := range k.Missing {
			s.fault(append(slices.Clone(path), name), "missing", "is required")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			s.fault(append(slices.Clone(path), name), "missing", "is required if %q is given", k.Prop)
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			s.fault(append(slices.Clone(path), name), "unknown", "unknown member %q: remove it", name)
		}
	case *kind.PropertyNames:
		if v.Member(k.Property) == nil {
			path = objectWith(s.root, k.Property, len(err.InstanceLocation), nil)
		}
		s.fault(append(slices.Clone(path), k.Property), "value", "the name %q is not allowed", k.Property)
	case *kind.Type:
		s.fault(path, "type", "must be %s, got %s", typeNames(k.Want), typeNames([]string{k.Got}))
	case *kind.Format:
		s.fault(path, "value", "must be a valid %s, got %s", k.Want, ShortValue(v))
	case *kind.Pattern:
		s.fault(path, "value", "must match the pattern %s, got %s", k.Want, ShortValue(v))
	default:
		if msg := limitSentence(err.ErrorKind, v, s.unit); msg != "" {
			s.fault(path, "value", "%s", msg)
			return
		}
		for _, cause := range err.Causes {
			s.addError(cause)
		}
		if len(err.Causes) == 0 {
			s.fault(path, "value", "violates the rule %q", strings.Join(err.ErrorKind.KeywordPath(), "."))
		}
	}
}

// objectWith returns the path of the first object at the given depth that has the member.
// The library reuses the memory of the path that it reports with a forbidden name, so
// only the length of that path is reliable.
func objectWith(v *strictjson.Value, member string, depth int, path []any) []any {
	if depth == 0 {
		if v.Member(member) == nil {
			return nil
		}
		return append([]any{}, path...)
	}
	for i, item := range v.Items {
		if found := objectWith(item, member, depth-1, append(slices.Clip(path), i)); found != nil {
			return found
		}
	}
	for _, m := range v.Members {
		if found := objectWith(m.Value, member, depth-1, append(slices.Clip(path), m.Name)); found != nil {
			return found
		}
	}
	return nil
}

// alternatives describes the errors of the intended branch, which is the only one that
// accepts the value's type; if there is no single such branch, it describes all branches
// in one sentence.
func (s *sentencer) alternatives(err *jsonschema.ValidationError, path []any, v *strictjson.Value) {
	if k, ok := err.ErrorKind.(*kind.OneOf); ok && len(k.Subschemas) > 1 {
		s.fault(path, "value", "matches more than one of several mutually exclusive forms")
		return
	}
	var meant []*jsonschema.ValidationError
	var all []string
	for _, cause := range err.Causes {
		branch := sentencer{root: s.root, unit: s.unit}
		branch.addError(cause)
		misfit := false
		for _, f := range branch.faults {
			misfit = misfit || f.Type == "type" && comparePaths(f.Loc, path) == 0
			all = append(all, strings.TrimPrefix(Path(f.Loc[min(len(path), len(f.Loc)):])+" "+f.Msg, " "))
		}
		if !misfit {
			meant = append(meant, cause)
		}
	}
	if len(meant) == 1 {
		s.addError(meant[0])
		return
	}
	s.fault(path, "value", "matches none of the allowed forms: %s", strings.Join(slices.Compact(all), "; or "))
}

// limitSentence describes a violated limit; it returns "" for other errors.
func limitSentence(k jsonschema.ErrorKind, v *strictjson.Value, unit string) string {
	if unit != "" {
		unit = " (" + unit + ")"
	}
	number := func(rule string, want *big.Rat) string {
		return fmt.Sprintf("must be %s %s%s, got %s", rule, decimalText(want), unit, ShortValue(v))
	}
	switch k := k.(type) {
	case *kind.Minimum:
		return number("at least", k.Want)
	case *kind.Maximum:
		return number("at most", k.Want)
	case *kind.ExclusiveMinimum:
		return number("more than", k.Want)
	case *kind.ExclusiveMaximum:
		return number("less than", k.Want)
	case *kind.MultipleOf:
		return number("a multiple of", k.Want)
	case *kind.Enum:
		return choiceSentence(k.Want, v)
	case *kind.Const:
		return fmt.Sprintf("must be %s, got %s", shownAny(k.Want), ShortValue(v))
	case *kind.Not:
		return "has a value that is not allowed"
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Contains:
		return "has no item of the required kind"
	}
	return countSentence(k)
}

// countSentence is limitSentence for lengths and item counts.
func countSentence(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must have at least %s, got %d", unit.Count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, got %d", unit.Count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s, got %d", unit.Count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, got %d", unit.Count(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s, got %d", unit.Count(k.Want, "member"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s, got %d", unit.Count(k.Want, "member"), k.Got)
	case *kind.MinContains:
		return fmt.Sprintf("must have at least %s of the required kind, got %d", unit.Count(k.Want, "item"), len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("must have at most %s of the limited kind, got %d", unit.Count(k.Want, "item"), len(k.Got))
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal; each can occur only once", k.Duplicates[0]+1, k.Duplicates[1]+1)
	}
	return ""
}

func choiceSentence(want []any, v *strictjson.Value) string {
	var all, texts []string
	for _, w := range want {
		all = append(all, shownAny(w))
		if s, ok := w.(string); ok {
			texts = append(texts, s)
		}
	}
	near := ""
	if v.Kind == strictjson.String {
		if near = plaintext.Nearest(v.Text, texts); near != "" {
			near = fmt.Sprintf("; did you mean %q?", near)
		}
	}
	if len(all) > shownChoices {
		all = append(all[:shownChoices], fmt.Sprintf("… (%d in all)", len(want)))
	}
	return fmt.Sprintf("must be one of %s, got %s%s", strings.Join(all, ", "), ShortValue(v), near)
}

// typeNames puts JSON Schema types into plain words.
func typeNames(types []string) string {
	words := map[string]string{
		"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false",
		"array": "a list", "object": "an object", "null": "null",
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = cmp.Or(words[t], t)
	}
	return strings.Join(names, " or ")
}

// ShortValue formats a value for a message, truncating long ones.
func ShortValue(v *strictjson.Value) string {
	text := []rune(string(strictjson.AppendPlain(nil, v)))
	if len(text) > shownValue {
		return string(text[:shownValue]) + "…"
	}
	return string(text)
}

func shownAny(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// decimalText formats a number of a schema in plain decimal notation.
func decimalText(r *big.Rat) string {
	if r.IsInt() {
		return strictjson.PlainNumber(r.Num().String())
	}
	f, _ := r.Float64()
	return strictjson.PlainNumber(strconv.FormatFloat(f, 'g', -1, 64))
}

// comparePaths orders paths by member names and numeric indexes.
func comparePaths(x, y []any) int {
	return slices.CompareFunc(x, y, func(a, b any) int {
		i, ok := a.(int)
		j, okToo := b.(int)
		if ok && okToo {
			return cmp.Compare(i, j)
		}
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}
