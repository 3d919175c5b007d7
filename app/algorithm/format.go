package algorithm

import (
	_ "embed" // format.json
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// FormatSchema is the JSON Schema of algorithm files. Some keywords are used for
// messages: title names a table, x-must completes "KEY must be", and x-use lists what a
// name can contain.
//
//go:embed format.json
var FormatSchema []byte

// formatSchema is FormatSchema, compiled for validation and as a tree for messages.
type formatSchema struct {
	compiled *jsonschema.Schema
	tree     *strictjson.Value // keeps the order of keys
}

// loadFormat compiles FormatSchema once. It panics on an error, which is a bug.
var loadFormat = sync.OnceValue(compileFormat)

func compileFormat() *formatSchema {
	const url = "urn:molrun:algorithm"
	tree, err := strictjson.Parse(FormatSchema)
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(url, tree.Any()); err != nil {
		panic(err)
	}
	return &formatSchema{c.MustCompile(url), tree}
}

// partAt returns the part of the schema that a URL refers to.
func (f *formatSchema) partAt(url string) *strictjson.Value {
	_, pointer, _ := strings.Cut(url, "#/")
	part := f.tree
	for name := range strings.SplitSeq(pointer, "/") {
		if name != "" {
			part = part.Member(name)
		}
	}
	return part
}

func textOf(part *strictjson.Value, name string) string {
	if v := part.Member(name); v != nil {
		return v.Text
	}
	return ""
}

func namesIn(part *strictjson.Value) (names []string) {
	for _, m := range part.Member("properties").Members {
		names = append(names, m.Name)
	}
	return names
}

// checkFormat reports violations of the schema: unknown or missing keys, and values with
// the wrong type or out of range. The code that reads the file need not check these.
func checkFormat(r *tomltree.Reader) {
	f := loadFormat()
	file, err := strictjson.Parse(r.Root.AppendJSON(nil))
	if err != nil {
		r.Errorf(1, "the file cannot be used: %v", err)
		return
	}
	var invalid *jsonschema.ValidationError
	if errors.As(f.compiled.Validate(file.Any()), &invalid) {
		f.noteError(r, invalid)
	}
}

func (f *formatSchema) noteError(r *tomltree.Reader, e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		f.noteError(r, cause)
	}
	n, part, key := r.Root.At(e.InstanceLocation), f.partAt(e.SchemaURL), keyOf(e.InstanceLocation)
	if n.Kind == strictjson.Null || len(e.Causes) > 0 {
		return // values of kind Null were reported by the parser
	}
	must := textOf(part, "x-must")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			switch {
			case n != r.Root:
				r.Errorf(n.Line, "%s is missing in %s", name, textOf(part, "title"))
			case name != "format": // reported by readFormat
				r.Errorf(n.Line, "%s is missing", name)
			}
		}
	case *kind.AdditionalProperties:
		for _, m := range n.Members {
			if slices.Contains(k.Properties, m.Name) {
				f.noteUnknown(r, n, m, namesIn(part), textOf(part, "title"), key)
			}
		}
	case *kind.Type:
		f.noteType(r, n, key, must, k.Want)
	case *kind.Enum:
		var all []string
		for _, v := range k.Want {
			all = append(all, fmt.Sprint(v))
		}
		r.Errorf(n.Line, "%s must be %s, got %s", key, tomltree.OrList(all), n.AppendJSON(nil))
	case *kind.Pattern:
		r.Errorf(n.Line, "%s %q is not allowed: use %s", key, n.Text, textOf(part, "x-use"))
	case *kind.Minimum, *kind.Maximum:
		if must != "" {
			r.Errorf(n.Line, "%s must be %s, got %s", key, must, n.Text)
			return
		}
		r.Errorf(n.Line, "%s must be between %s and %s, got %s", key, textOf(part, "minimum"), textOf(part, "maximum"), n.Text)
	}
}

// keyOf returns the name of the value at a path, for messages.
func keyOf(place []string) string {
	if len(place) == 0 {
		return ""
	}
	last := place[len(place)-1]
	if strings.Trim(last, "0123456789") == "" && len(place) > 1 {
		return "each of " + place[len(place)-2]
	}
	return last
}

// noteUnknown reports an unknown key of a table and suggests the closest known one.
func (f *formatSchema) noteUnknown(r *tomltree.Reader, t *tomltree.Node, m tomltree.Member, known []string, title, key string) {
	where := title
	if where == "" {
		where = key
	}
	near := plaintext.Nearest(m.Name, known)
	switch {
	case t != r.Root && slices.Contains(namesIn(f.tree), m.Name):
		r.Errorf(m.Line, "%q does not belong to %s: move it above the first [table] of the file", m.Name, where)
	case near != "":
		r.Errorf(m.Line, "unknown key %q in %s; did you mean %q?", m.Name, where, near)
	default:
		r.Errorf(m.Line, "unknown key %q in %s; valid keys are %s", m.Name, where, strings.Join(known, ", "))
	}
}

// noteType reports a value of the wrong type.
func (f *formatSchema) noteType(r *tomltree.Reader, n *tomltree.Node, key, must string, want []string) {
	if slices.Equal(want, []string{"integer"}) && n.Kind == strictjson.Number {
		r.Errorf(n.Line, "%s must be a whole number, got %s", key, n.Text)
		return
	}
	if must == "" {
		var all []string
		for _, name := range want {
			all = append(all, tomltree.KindName(kinds[name]))
		}
		must = strings.Join(all, " or ")
	}
	r.Errorf(n.Line, "%s must be %s, got %s", key, must, tomltree.KindName(n.Kind))
}

// kinds maps JSON Schema types to kinds of values.
var kinds = map[string]strictjson.Kind{
	"string": strictjson.String, "number": strictjson.Number, "integer": strictjson.Number, "boolean": strictjson.Bool,
	"array": strictjson.Array, "object": strictjson.Object,
}
