package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestPeek(t *testing.T) {
	for _, object := range []string{
		`{}`, `{"a":1}`, `{"a":1,"b":-2.5e3,"c":true,"d":null}`,
		`{"a":"x,}\"]","b":{"c":[1,{"d":"}"}],"e":"\\"},"f":[],"g":"\\\""}`,
		`{"b\"":"","c":["a,b",[2]]}`,
	} {
		var got []string
		Peek([]byte(object), func(name, value []byte) bool {
			got = append(got, fmt.Sprintf(`"%s":%s`, name, value))
			return true
		})
		must.Equal(t, "visited", "{"+strings.Join(got, ",")+"}", object)
	}
	visits := 0
	Peek([]byte(`{"a":1,"b":2}`), func([]byte, []byte) bool { visits++; return false })
	must.Equal(t, "visits", visits, 1)
}

// FuzzPeek requires the same members as encoding/json, and no panic for any other input.
func FuzzPeek(f *testing.F) {
	for _, seed := range []string{``, `{`, `{"`, `{"a`, `{"a":`, `{"a":"`, `{"a":[`, `{"a":1,"b":{"c":2}}`, `{"a\\":"\""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var visited int
		Peek(text, func([]byte, []byte) bool { visited++; return true })
		v, err := Parse(text)
		if err != nil || v.Kind != Object {
			return
		}
		encoded, err := Encode(json.RawMessage(AppendPlain(nil, v)))
		must.OK(t, err)
		visited = 0
		Peek(encoded, func(_, value []byte) bool {
			if visited++; !json.Valid(value) {
				t.Errorf("%s is not a value of %s", value, encoded)
			}
			return true
		})
		if visited != len(v.Members) {
			t.Errorf("%d members of %s, want %d", visited, encoded, len(v.Members))
		}
	})
}
