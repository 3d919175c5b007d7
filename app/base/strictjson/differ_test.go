package strictjson

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

func TestDiffering(t *testing.T) {
	for _, tt := range []struct {
		name    string
		objects []string
		want    []string
	}{
		{"none", nil, []string{}},
		{"one", []string{`{"a":1}`}, []string{}},
		{"equal", []string{`{"a":1,"b":[1]}`, `{"a":1,"b":[1]}`, `{"a":1,"b":[1]}`}, []string{}},
		{"values", []string{`{"a":1,"b":[1],"c":0}`, `{"a":1,"b":[2],"c":0}`, `{"a":2,"b":[1],"c":0}`}, []string{"a", "b"}},
		{"the first lacks one", []string{`{"a":1}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`}, []string{"b"}},
		{"a later one lacks one", []string{`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"a":1}`}, []string{"b"}},
		{"lacking and more", []string{`{"a":1,"b":2}`, `{"b":2,"c":3}`}, []string{"a", "c"}},
		{"null is a value", []string{`{"a":null}`, `{}`}, []string{"a"}},
	} {
		all := func(yield func(json.RawMessage, error) bool) {
			for _, o := range tt.objects {
				if !yield(json.RawMessage(o), nil) {
					return
				}
			}
		}
		if got, err := Differing(all); err != nil || got == nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %#v, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	failing := errors.New("failing")
	if _, err := Differing(func(yield func(json.RawMessage, error) bool) { yield(nil, failing) }); !errors.Is(err, failing) {
		t.Errorf("error %v, want that of the walk", err)
	}
}
