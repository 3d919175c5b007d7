package strictjson

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Differing returns the sorted names of the members that are missing in some objects or
// have different values. All objects must be in the same form, such as that of
// AppendPlain, so that equal values have equal bytes.
func Differing(objects []json.RawMessage) ([]string, error) {
	var first json.RawMessage
	var usual []Member
	differing := map[string]bool{}
	for _, object := range objects {
		if bytes.Equal(object, first) {
			continue
		}
		v, err := Parse(object)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first, usual = object, v.Members
			continue
		}
		compareMembers(usual, v, differing)
	}
	return slices.Sorted(maps.Keys(differing)), nil
}

// compareMembers adds the names of the members in which an object differs.
func compareMembers(usual []Member, object *Value, differing map[string]bool) {
	same := 0
	for _, m := range usual {
		if v := object.Member(m.Name); v != nil && bytes.Equal(v.Raw, m.Value.Raw) {
			same++
		} else {
			differing[m.Name] = true
		}
	}
	if same == len(object.Members) {
		return
	}
	for _, m := range object.Members {
		if !slices.ContainsFunc(usual, func(u Member) bool { return u.Name == m.Name }) {
			differing[m.Name] = true
		}
	}
}
