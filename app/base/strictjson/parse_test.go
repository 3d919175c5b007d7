package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestParseJSONRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "ends at byte 0"},
		{"two documents", `{} {}`, "one JSON document"},
		{"duplicate member", `{"a":{"b":1,"b":2}}`, `"b" occurs twice`},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, `"a" occurs twice`},
		{"invalid UTF-8", "\"\xff\"", "UTF-8"},
		{"half a surrogate", `"\ud800"`, "surrogate"},
		{"low surrogate alone", `"\udc00x"`, "surrogate"},
		{"control character", "\"\n\"", "control character"},
		{"huge number", `1e400`, "out of range"},
		{"tiny number", `1e-10000000000`, "out of range"},
		{"zero with a tiny exponent", `0e-10000000000`, "out of range"},
		{"long number", strings.Repeat("1", 65), "64 characters"},
		{"leading zero", `01`, "one JSON document"},
		{"plus", `+1`, "a JSON value"},
		{"NaN", `NaN`, "a JSON value"},
		{"bare fraction", `1.`, "a digit"},
		{"trailing comma", `[1,]`, "a JSON value"},
		{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), "64 levels"},
		{"too many values", "[" + strings.Repeat("0,", 1_000_000) + "0]", "1000000 values"},
		{"unclosed string", `"abc`, "end of a string"},
		{"unclosed escape", `"\u12`, "hexadecimal"},
		{"bad escape", `"\x"`, "an escape"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text), "body")
			if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ParseJSON(%.40q) = %v, want Invalid with %q", tt.text, err, tt.want)
			}
		})
	}
	for _, longest := range []string{strings.Repeat("1", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)} {
		if _, err := Parse([]byte(longest), "body"); err != nil {
			t.Errorf("ParseJSON(%.40q) = %v", longest, err)
		}
	}
}

func TestParseJSONReportsPath(t *testing.T) {
	_, err := Parse([]byte(`{"a":[1,{"b":1,"b":2}]}`), "body")
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	must.Equal(t, "loc", fmt.Sprint(e.Fields[0].Loc), "[body a 1 b]")
}

func TestCanonicalFormOfEqualMeaning(t *testing.T) {
	tests := []struct {
		want  string
		texts []string
	}{
		{`{"a":10,"b":"é"}`, []string{` {"b":"\u00e9", "a":1e1}`, `{"a":10.0,"b":"é"}`, `{"a":100e-1,"b":"é"}`}},
		{`0`, []string{`0`, `-0`, `0.000`, `0e5`}},
		{`15e-1`, []string{`1.5`, `1.50`, `0.15e1`}},
		{`9007199254740993`, []string{`9007199254740993`, `9007199254740993.0`}},
		{`1e300`, []string{`1e300`, `10E299`}},
		{`[true,false,null,"\u0001\"\\/"]`, []string{`[true, false,null,"\u0001\"\\\/"]`}},
		{`"😀"`, []string{`"\ud83d\ude00"`}},
	}
	for _, tt := range tests {
		for _, text := range tt.texts {
			v, err := Parse([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			must.Equal(t, fmt.Sprintf("canonical form of %s", text), string(v.AppendCanonical(nil)), tt.want)
		}
	}
}

func TestValueInt(t *testing.T) {
	for text, want := range map[string]int64{"5": 5, "5.0": 5, "1e3": 1000, "-0": 0, "9007199254740992": 1 << 53} {
		v, _ := Parse([]byte(text))
		if got, ok := v.Int(); !ok || got != want {
			t.Errorf("Int of %s = %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"1.5", "9007199254740993", "-1e20", `"5"`} {
		v, _ := Parse([]byte(text))
		if got, ok := v.Int(); ok {
			t.Errorf("Int of %s = %d, want none", text, got)
		}
	}
}

func TestPlainNumbers(t *testing.T) {
	tests := map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "5.0": "5", "-5.50": "-5.5", "1e3": "1000", "1E+3": "1000", "15e-1": "1.5",
		"0.00001": "0.00001", "0.0000001": "1e-7", "1.5e-10": "1.5e-10", "123456789012345678901": "123456789012345678901",
		"1e21": "1e21", "1e20": "100000000000000000000", "-2.5e300": "-2.5e300", "0.1": "0.1", "100": "100",
	}
	for text, want := range tests {
		must.Equal(t, fmt.Sprintf("PlainNumber(%s)", text), PlainNumber(text), want)
	}
}

// FuzzParseJSON compares accepted documents with encoding/json, and checks that the
// canonical form is stable.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e9",null,true]}`, `"\ud83d\ude00"`, `-0.0e-0`, `{"a":1,"a":2}`, `[[[]]]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		if err != nil {
			if !errors.Is(err, fault.Invalid) {
				t.Fatalf("error %v is not Invalid", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted %q, which encoding/json rejects", data)
		}
		canonical := v.AppendCanonical(nil)
		again, err := Parse(canonical)
		if err != nil && strings.Contains(err.Error(), "64 characters") {
			return // the exponent made a long number longer; the form is hashed, never parsed
		}
		if err != nil {
			t.Fatalf("canonical form %q of %q: %v", canonical, data, err)
		}
		if got := again.AppendCanonical(nil); string(got) != string(canonical) {
			t.Fatalf("canonical form %q of %q becomes %q", canonical, data, got)
		}
	})
}
