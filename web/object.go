package web

import (
	"slices"

	"molrun/app"
	"molrun/app/strictjson"
)

// maxExact is the largest integer that every JSON reader keeps.
const maxExact = 1 << 53

// object reads the members of a body. One that could not be read, or is not
// there, gives zero values and no further faults.
type object struct {
	in    *input
	value *strictjson.Value // nil: nothing to read
	known []string
}

// need says whether a part of a body may be left out.
type need bool

const (
	required need = true
	optional need = false
)

// object gives the body, which is a JSON object.
func (in *input) object(n need) *object {
	in.body = &object{in: in}
	data, err := readBody(in.c)
	if err != nil {
		in.refuse(err)
		return in.body
	}
	if len(data) == 0 {
		if n == required {
			in.fault("missing", []any{"body"}, "send a JSON object")
		}
		return in.body
	}
	value, err := in.limits().json.Parse(data, "body")
	switch {
	case err != nil:
		in.refuse(err)
	case value.Kind == strictjson.Null && n == optional:
	case value.Kind != strictjson.Object:
		in.fault("type", []any{"body"}, "send a JSON object, not %v", value.Kind)
	default:
		in.body.value = value
	}
	return in.body
}

// noBody demands a body that says nothing: none, {} or null.
func (in *input) noBody() { in.object(optional) }

// end finds the members that nobody asked for.
func (o *object) end() {
	if o == nil || o.value == nil {
		return
	}
	for _, m := range o.value.Members {
		if !slices.Contains(o.known, m.Name) {
			o.in.fault("unknown", []any{"body", m.Name}, "there is no member %q here; %s", cut(m.Name), suggest(m.Name, o.known))
		}
	}
}

// member gives a member of a kind, nil where there is none. An optional one
// may be null, which is the same as none.
func (o *object) member(name string, kind strictjson.Kind, n need) *strictjson.Value {
	o.known = append(o.known, name)
	if o.value == nil {
		return nil
	}
	v := o.value.Member(name)
	switch {
	case v == nil && n == required:
		o.fault("missing", name, "this member is required")
	case v == nil || v.Kind == strictjson.Null && n == optional:
	case v.Kind != kind:
		o.fault("type", name, "use %v, not %v", kind, v.Kind)
	default:
		return v
	}
	return nil
}

func (o *object) fault(kind, name, format string, args ...any) {
	o.in.fault(kind, []any{"body", name}, format, args...)
}

// text gives a string, which is not empty where it is sent.
func (o *object) text(name string, n need) string {
	v := o.member(name, strictjson.String, n)
	if v == nil {
		return ""
	}
	if v.Text == "" {
		o.fault("value", name, "use at least one character")
	}
	return v.Text
}

// integer gives a whole number from min to max, nil where none is sent.
func (o *object) integer(name string, min, max int64) *int64 {
	v := o.member(name, strictjson.Number, optional)
	if v == nil {
		return nil
	}
	n, whole := v.Int()
	switch {
	case !whole:
		o.fault("type", name, "use a whole number within ±2^53")
	case n < min || n > max:
		o.fault("value", name, "use a number from %d to %d", min, max)
	default:
		return &n
	}
	return nil
}

// flag gives a boolean, false where none is sent.
func (o *object) flag(name string) bool {
	v := o.member(name, strictjson.Bool, optional)
	return v != nil && v.Text == "true"
}

// items gives the elements of an array; one that is not of that kind is nil
// and a fault.
func (o *object) items(name string, kind strictjson.Kind, n need) []*strictjson.Value {
	v := o.member(name, strictjson.Array, n)
	if v == nil {
		return nil
	}
	items := make([]*strictjson.Value, len(v.Items))
	for i, item := range v.Items {
		if item.Kind == kind {
			items[i] = item
		} else if i < maxItemFaults {
			o.in.fault("type", []any{"body", name, i}, "use %v, not %v", kind, item.Kind)
		}
	}
	return items
}

// maxItemFaults bounds the answer to an array in which every element is
// wrong; no array may have more elements than that anyway.
const maxItemFaults = app.MaxBatchRows

// texts gives an array of strings, nil where there is none or it has a fault.
func (o *object) texts(name string) []string {
	items := o.items(name, strictjson.String, optional)
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

// valueOf gives what p points to, 0 where it is nil.
func valueOf(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
