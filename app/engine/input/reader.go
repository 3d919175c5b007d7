package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
)

// Reader reads values from settings and collects validation errors.
type Reader struct {
	Faults []fault.Field
	raw    map[string]json.RawMessage
	keys   []string
}

// NewReader reads settings, one JSON object in which null means absent. keys are all
// valid keys. It returns an error if settings is not an object.
func NewReader(settings []byte, keys []string) (*Reader, *fault.Field) {
	r := &Reader{keys: keys}
	if err := r.decode(settings); err != nil {
		wrong := Faultf(Loc(), JSON, "settings must be one JSON object: %v", err)
		return nil, &wrong
	}
	r.checkKeys()
	return r, nil
}

func (r *Reader) decode(settings []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(settings))
	switch err := decoder.Decode(&r.raw); {
	case errors.Is(err, io.EOF):
		return errors.New("the input is empty")
	case err != nil:
		return err
	case r.raw == nil:
		return errors.New("null was given")
	case decoder.More():
		return errors.New("there is text after the object")
	}
	for key, value := range r.raw {
		if string(value) == "null" {
			delete(r.raw, key)
		}
	}
	return nil
}

// Fault adds a validation error.
func (r *Reader) Fault(loc []any, kind, format string, args ...any) {
	r.Faults = append(r.Faults, Faultf(loc, kind, format, args...))
}

// checkKeys reports unknown keys.
func (r *Reader) checkKeys() {
	var unknown []string
	for key := range r.raw {
		if !slices.Contains(r.keys, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for _, key := range unknown {
		if near := r.suggestion(key); near != "" {
			r.Fault(Loc(key), Unknown, "unknown setting %q; did you mean %q?", key, near)
			continue
		}
		r.Fault(Loc(key), Unknown, "unknown setting %q; valid settings are %s", key, strings.Join(r.keys, ", "))
	}
}

// suggestion returns the key that starts with word or, failing that, the most similar
// key. It returns "" if no key is close.
func (r *Reader) suggestion(word string) string {
	const leastBeginning = 3
	for _, key := range r.keys {
		if len(word) >= leastBeginning && strings.HasPrefix(strings.ToLower(key), strings.ToLower(word)) {
			return key
		}
	}
	return plaintext.Nearest(word, r.keys)
}

// Has reports whether a key has a value.
func (r *Reader) Has(key string) bool { return r.raw[key] != nil }

// HasFault reports whether a key has a validation error.
func (r *Reader) HasFault(key string) bool {
	return slices.ContainsFunc(r.Faults, func(f fault.Field) bool { return len(f.Loc) > 0 && f.Loc[0] == key })
}

// Number returns the value of a numeric setting, or its default if it is absent or
// invalid.
func (r *Reader) Number(l Limit) float64 {
	raw, ok := r.raw[l.Key]
	if !ok {
		return l.Default
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		r.Fault(Loc(l.Key), Type, "%s must be a number, not %s", l.Key, KindOf(raw))
		return l.Default
	}
	value, _ := strconv.ParseFloat(string(raw), 64) // ±Inf if too large
	if value < l.Low || value > l.High {
		r.Fault(Loc(l.Key), Range, "%s is %s; choose between %s and %s%s%s",
			l.Key, raw, Plain(l.Low), Plain(l.High), l.Unit, l.adviceOn(value))
		return l.Default
	}
	return value
}

// Integer is like Number for whole numbers, including 1e6.
func (r *Reader) Integer(l Limit) int64 {
	value := r.Number(l)
	if value != math.Trunc(value) {
		r.Fault(Loc(l.Key), Type, "%s must be a whole number, not %s", l.Key, Plain(value))
		return int64(l.Default)
	}
	return int64(value)
}

// Boolean returns the value of a Boolean setting.
func (r *Reader) Boolean(key string, preset bool) bool {
	raw, ok := r.raw[key]
	if !ok {
		return preset
	}
	var value bool
	if err := json.Unmarshal(raw, &value); err != nil {
		r.Fault(Loc(key), Type, "%s must be true or false, not %s", key, KindOf(raw))
		return preset
	}
	return value
}

// Text returns the value if it is a string.
func (r *Reader) Text(key string) (string, bool) {
	var value string
	if !r.Has(key) || json.Unmarshal(r.raw[key], &value) != nil {
		return "", false
	}
	return value, true
}

// Texts returns the value if it is an array. Items that are not strings are validation
// errors and are nil in the result.
func (r *Reader) Texts(key string) ([]*string, bool) {
	var items []json.RawMessage
	if json.Unmarshal(r.raw[key], &items) != nil {
		return nil, false
	}
	values := make([]*string, len(items))
	for i, item := range items {
		if json.Unmarshal(item, &values[i]) != nil || values[i] == nil {
			r.Fault(Loc(key, i), Type, "item %d of %s must be text, not %s", i+1, key, KindOf(item))
			values[i] = nil
		}
	}
	return values, true
}

// Raw returns the raw value, or nil if it is absent.
func (r *Reader) Raw(key string) json.RawMessage { return r.raw[key] }

// KindOf describes the type of a JSON value for a message.
func KindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "text (remove the quotes?)"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "the number " + string(raw)
}
