package decode

import (
	"bytes"
	"slices"

	"molrun/app/base/strictjson"
)

// MaxExact is the largest integer that every JSON reader represents exactly.
const MaxExact = 1 << 53

// Object reads the members of a body or of an object in it. If the object is absent or
// could not be read, its members are zero values without further errors.
type Object struct {
	r     *Reader
	at    []any             // path of the object
	value *strictjson.Value // nil if there is nothing to read
	known []string
}

// Need says whether a part of a body is required.
type Need bool

// The values of Need.
const (
	Required Need = true
	Optional Need = false
)

// Object returns the body, which must be a JSON object.
func (r *Reader) Object(n Need) *Object {
	r.body = &Object{r: r, at: []any{"body"}}
	r.objects = append(r.objects, r.body)
	data, err := r.readBody()
	if err != nil {
		r.fail(err)
		return r.body
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // some Windows programs write a byte order mark
	if len(data) == 0 {
		if n == Required {
			r.Fault("missing", []any{"body"}, "send a JSON object")
		}
		return r.body
	}
	value, err := r.limits().JSON.Parse(data, "body")
	switch {
	case err != nil:
		r.fail(err)
	case value.Kind == strictjson.Null && n == Optional:
	case value.Kind != strictjson.Object:
		r.Fault("type", []any{"body"}, "send a JSON object, not %v", value.Kind)
	default:
		r.body.value = value
	}
	return r.body
}

// NoBody requires that the body is empty, {} or null.
func (r *Reader) NoBody() { r.Object(Optional) }

// Value returns the JSON of the whole body, or nil if it could not be read.
func (o *Object) Value() *strictjson.Value { return o.value }

// Member returns a member of the given kind, or nil if it is absent. null counts as
// absent for an optional member.
func (o *Object) Member(name string, kind strictjson.Kind, n Need) *strictjson.Value {
	o.known = append(o.known, name)
	if o.value == nil {
		return nil
	}
	v := o.value.Member(name)
	switch {
	case v == nil && n == Required:
		o.Fault("missing", name, "this member is required")
	case v == nil || v.Kind == strictjson.Null && n == Optional:
	case v.Kind != kind:
		o.Fault("type", name, "use %v, not %v", kind, v.Kind)
	default:
		return v
	}
	return nil
}

// Fault adds an error about a member.
func (o *Object) Fault(kind, name, format string, args ...any) {
	o.r.Fault(kind, o.path(name), format, args...)
}

// path returns the path of a part of the object.
func (o *Object) path(to ...any) []any { return slices.Concat(o.at, to) }

// Has reports whether an optional member is present.
func (o *Object) Has(name string) bool {
	if o.value == nil {
		return false
	}
	v := o.value.Member(name)
	return v != nil && v.Kind != strictjson.Null
}

// Objects returns the elements of an array of objects. Any other element is an error, and
// is returned as an object without members.
func (o *Object) Objects(name string) []*Object {
	items := o.Items(name, strictjson.Object, Optional)
	objects := make([]*Object, len(items))
	for i, item := range items {
		objects[i] = &Object{r: o.r, at: o.path(name, i), value: item}
	}
	o.r.objects = append(o.r.objects, objects...)
	return objects
}

// Text returns a non-empty string.
func (o *Object) Text(name string, n Need) string {
	v := o.Member(name, strictjson.String, n)
	if v == nil {
		return ""
	}
	if v.Text == "" {
		o.Fault("value", name, "use at least one character")
	}
	return v.Text
}

// Integer returns an integer from min to max, or nil if it is absent.
func (o *Object) Integer(name string, min, max int64) *int64 {
	v := o.Member(name, strictjson.Number, Optional)
	if v == nil {
		return nil
	}
	n, whole := v.Int()
	switch {
	case !whole:
		o.Fault("type", name, "use an integer within ±2^53")
	case n < min || n > max:
		o.Fault("value", name, "use a number from %d to %d", min, max)
	default:
		return &n
	}
	return nil
}

// Flag returns a boolean, or false if it is absent.
func (o *Object) Flag(name string) bool {
	v := o.Member(name, strictjson.Bool, Optional)
	return v != nil && v.Text == "true"
}

// Items returns the elements of an array. An element of another kind is an error, and is
// returned as nil.
func (o *Object) Items(name string, kind strictjson.Kind, n Need) []*strictjson.Value {
	v := o.Member(name, strictjson.Array, n)
	if v == nil {
		return nil
	}
	items := make([]*strictjson.Value, len(v.Items))
	for i, item := range v.Items {
		if item.Kind == kind {
			items[i] = item
		} else if i < maxItemFaults {
			o.r.Fault("type", o.path(name, i), "use %v, not %v", kind, item.Kind)
		}
	}
	return items
}

// maxItemFaults limits the number of errors reported for one array.
const maxItemFaults = 10_000

// Texts returns an array of strings, or nil if it is absent or has an error.
func (o *Object) Texts(name string) []string {
	items := o.Items(name, strictjson.String, Optional)
	if items == nil {
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if item == nil {
			return nil
		}
		texts[i] = item.Text
	}
	return texts
}

// Pairs returns an object whose members are strings or null, or nil if it is absent.
func (o *Object) Pairs(name string) map[string]*string {
	v := o.Member(name, strictjson.Object, Optional)
	if v == nil {
		return nil
	}
	pairs := make(map[string]*string, len(v.Members))
	for i, m := range v.Members {
		switch {
		case m.Value.Kind == strictjson.String:
			pairs[m.Name] = &m.Value.Text
		case m.Value.Kind == strictjson.Null:
			pairs[m.Name] = nil
		case i < maxItemFaults:
			o.r.Fault("type", o.path(name, m.Name), "use %v, not %v", strictjson.String, m.Value.Kind)
		}
	}
	return pairs
}

// OrZero returns *p, or 0 if p is nil.
func OrZero(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
