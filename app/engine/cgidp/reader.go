package cgidp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"molrun/app/nearest"
)

// reader takes values from the settings and collects the faults.
type reader struct {
	raw    map[string]json.RawMessage
	faults []Fault
}

func newReader(settings []byte) (*reader, error) {
	r := &reader{}
	decoder := json.NewDecoder(bytes.NewReader(settings))
	switch err := decoder.Decode(&r.raw); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("nothing was given")
	case err != nil:
		return nil, err
	case r.raw == nil:
		return nil, errors.New("null was given")
	case decoder.More():
		return nil, errors.New("more text follows it")
	}
	for key, value := range r.raw {
		if string(value) == "null" {
			delete(r.raw, key)
		}
	}
	return r, nil
}

func (r *reader) fault(loc []any, kind, format string, args ...any) {
	r.faults = append(r.faults, faultf(loc, kind, format, args...))
}

// checkKeys finds unknown keys.
func (r *reader) checkKeys() {
	var unknown []string
	for key := range r.raw {
		if !slices.Contains(keys, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for _, key := range unknown {
		if near := suggestion(key); near != "" {
			r.fault(loc(key), faultUnknown, "there is no setting %q; did you mean %q?", key, near)
			continue
		}
		r.fault(loc(key), faultUnknown, "there is no setting %q; there are %s", key, strings.Join(keys, ", "))
	}
}

// suggestion is the key that a word begins or, if there is none, the most similar
// one; "" if none is close.
func suggestion(word string) string {
	const leastBeginning = 3
	for _, key := range keys {
		if len(word) >= leastBeginning && strings.HasPrefix(strings.ToLower(key), strings.ToLower(word)) {
			return key
		}
	}
	return nearest.Of(word, keys)
}

// has reports whether a key has a value.
func (r *reader) has(key string) bool { return r.raw[key] != nil }

// faulty reports whether a key has a fault.
func (r *reader) faulty(key string) bool {
	return slices.ContainsFunc(r.faults, func(f Fault) bool { return len(f.Loc) > 0 && f.Loc[0] == key })
}

// number returns the value of a numeric setting, its preset if absent or wrong.
func (r *reader) number(l limit) float64 {
	raw, ok := r.raw[l.key]
	if !ok {
		return l.preset
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		r.fault(loc(l.key), faultType, "%s must be a number, not %s", l.key, kindOf(raw))
		return l.preset
	}
	value, _ := strconv.ParseFloat(string(raw), 64) // infinite if too large
	if value < l.low || value > l.high {
		r.fault(loc(l.key), faultRange, "%s is %s; choose between %s and %s%s%s",
			l.key, raw, plain(l.low), plain(l.high), l.unit, l.adviceOn(value))
		return l.preset
	}
	return value
}

// integer is like number for whole numbers; 1e6 is one.
func (r *reader) integer(l limit) int64 {
	value := r.number(l)
	if value != math.Trunc(value) {
		r.fault(loc(l.key), faultType, "%s must be a whole number, not %s", l.key, plain(value))
		return int64(l.preset)
	}
	return int64(value)
}

func (r *reader) boolean(key string, preset bool) bool {
	raw, ok := r.raw[key]
	if !ok {
		return preset
	}
	var value bool
	if err := json.Unmarshal(raw, &value); err != nil {
		r.fault(loc(key), faultType, "%s must be true or false, not %s", key, kindOf(raw))
		return preset
	}
	return value
}

// text returns a value if it is a string.
func (r *reader) text(key string) (string, bool) {
	var value string
	if !r.has(key) || json.Unmarshal(r.raw[key], &value) != nil {
		return "", false
	}
	return value, true
}

// texts returns a value if it is an array. Items that are not strings are faults,
// and nil.
func (r *reader) texts(key string) ([]*string, bool) {
	var items []json.RawMessage
	if json.Unmarshal(r.raw[key], &items) != nil {
		return nil, false
	}
	values := make([]*string, len(items))
	for i, item := range items {
		if json.Unmarshal(item, &values[i]) != nil || values[i] == nil {
			r.fault(loc(key, i), faultType, "item %d of %s must be text, not %s", i+1, key, kindOf(item))
			values[i] = nil
		}
	}
	return values, true
}

// kindOf names a JSON value for a message.
func kindOf(raw json.RawMessage) string {
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
