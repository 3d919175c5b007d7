package strictjson

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestDiffering(t *testing.T) {
	for _, tt := range []struct {
		name    string
		objects []string
		want    []string
	}{
		{"none", nil, nil},
		{"one", []string{`{"a":1}`}, nil},
		{"equal", []string{`{"a":1,"b":[1]}`, `{"a":1,"b":[1]}`, `{"a":1,"b":[1]}`}, nil},
		{"values", []string{`{"a":1,"b":[1],"c":0}`, `{"a":1,"b":[2],"c":0}`, `{"a":2,"b":[1],"c":0}`}, []string{"a", "b"}},
		{"the first lacks one", []string{`{"a":1}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`}, []string{"b"}},
		{"a later one lacks one", []string{`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"a":1}`}, []string{"b"}},
		{"lacking and more", []string{`{"a":1,"b":2}`, `{"b":2,"c":3}`}, []string{"a", "c"}},
		{"null is a value", []string{`{"a":null}`, `{}`}, []string{"a"}},
	} {
		var all []json.RawMessage
		for _, o := range tt.objects {
			all = append(all, json.RawMessage(o))
		}
		if got, err := Differing(all); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %#v, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	if _, err := Differing([]json.RawMessage{[]byte(`{}`), []byte(`{"a"`)}); err == nil {
		t.Error("invalid JSON was compared")
	}
}
