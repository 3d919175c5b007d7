package algorithm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

// compileSettingsSchema compiles the client schema as a client would.
func compileSettingsSchema(t *testing.T, a *File) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(a.schema)))
	must.OK(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	must.OK(t, c.AddResource("urn:settings", doc))
	schema, err := c.Compile("urn:settings")
	if err != nil {
		t.Fatalf("schema %s: %v", a.schema, err)
	}
	return schema
}

func parseJSON(t testing.TB, text string) *strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text))
	must.OK(t, err)
	return v
}

// checked returns normalized settings, which must be valid.
func checked(t testing.TB, a *File, settings string) json.RawMessage {
	t.Helper()
	given, faults := a.CheckSettings(parseJSON(t, settings))
	if faults != nil {
		t.Fatalf("%s: %v", settings, faults)
	}
	return Normalize(given)
}

const settingsFile = head + `
[[parameters]]
name = "cutoff"
type = "number"
minimum = 1.0
maximum = 20.0
default = 5.0
unit = "Å"

[[parameters]]
name = "steps"
type = "integer"
required = true

[[parameters]]
name = "seed"
type = "integer"
minimum = 0
maximum = 18446744073709551615.0

[[parameters]]
name = "sequences"
type = ["array", "string"]
minItems = 1
maxItems = 3
uniqueItems = true
minLength = 3
items = { type = "string", minLength = 1, pattern = "^[A-Z]+$" }

[[parameters]]
name = "method"
enum = ["fast", "exact"]
default = "fast"

[[parameters]]
name = "note"
type = ["string", "null"]

[[parameters]]
name = "shape"
oneOf = [
  { type = "string", enum = ["sphere", "cube"] },
  { type = "object", properties = { radius = { type = "number", exclusiveMinimum = 0 } }, required = ["radius"], additionalProperties = false },
]

[[parameters]]
name = "text"
file = [".txt", ".tar.gz"]

[[parameters]]
name = "mail"
type = "string"
format = "email"
maxLength = 30

[[parameters]]
name = "grid"
type = "array"
items = { type = "integer", multipleOf = 5 }

[[parameters]]
name = "extra"
type = "object"
maxProperties = 2
propertyNames = { pattern = "^[a-z]+$" }
dependentRequired = { a = ["b"] }
`

func TestSettingsAreNormalised(t *testing.T) {
	a := parseOK(t, settingsFile)
	const rest = `"method":"fast"`
	tests := []struct{ name, settings, want string }{
		{"defaults", `{"steps":1}`, `{"cutoff":5,` + rest + `,"steps":1}`},
		{"sorted", `{"steps":1,"seed":2,"cutoff":3}`, `{"cutoff":3,"method":"fast","seed":2,"steps":1}`},
		{"plain integers", `{"steps":1e6,"seed":5.0}`, `{"cutoff":5,"method":"fast","seed":5,"steps":1000000}`},
		{"exact numbers", `{"steps":1,"cutoff":1.000000000000000000001}`, `{"cutoff":1.000000000000000000001,"method":"fast","steps":1}`},
		{"plain fractions", `{"steps":1,"cutoff":15e-1}`, `{"cutoff":1.5,"method":"fast","steps":1}`},
		{"beyond 2^53 where a parameter says so", `{"steps":1,"seed":18446744073709551615}`, `{"cutoff":5,"method":"fast","seed":18446744073709551615,"steps":1}`},
		{"null is no value", `{"steps":1,"cutoff":null,"seed":null}`, `{"cutoff":5,"method":"fast","steps":1}`},
		{"null where it means something", `{"steps":1,"note":null}`, `{"cutoff":5,"method":"fast","note":null,"steps":1}`},
		{"members of objects", `{"steps":1,"extra":{"b":1.50,"a":{"z":[1e2],"y":"<ü>"}}}`, `{"cutoff":5,"extra":{"a":{"y":"<ü>","z":[100]},"b":1.5},"method":"fast","steps":1}`},
		{"reference to a file", `{"steps":1,"text":"inputs/a.txt"}`, `{"cutoff":5,"method":"fast","steps":1,"text":"inputs/a.txt"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			must.Equal(t, fmt.Sprintf("CheckSettings(%s)", tt.settings), string(checked(t, a, tt.settings)), tt.want)
		})
	}
}

func TestFaultsOfSettings(t *testing.T) {
	a := parseOK(t, settingsFile)
	flaw := func(typ, msg string, loc ...any) fault.Field { return fault.Field{Loc: loc, Msg: msg, Type: typ} }
	tests := []struct {
		name, settings string
		want           []fault.Field
	}{
		{"no object", `[]`, []fault.Field{{Loc: []any{}, Msg: "settings must be an object", Type: "type"}}},
		{"missing", `{}`, []fault.Field{flaw("missing", "is required", "steps")}},
		{"null for a required one", `{"steps":null}`, []fault.Field{flaw("missing", "is required", "steps")}},
		{"unknown", `{"steps":1,"cutof":2}`, []fault.Field{flaw("unknown", `demo has no setting "cutof"; did you mean "cutoff"?`, "cutof")}},
		{"unknown like no other", `{"steps":1,"zzzzzzzzz":2}`, []fault.Field{flaw("unknown", `demo has no setting "zzzzzzzzz"; it has cutoff, steps, seed, sequences, method, note, shape, text, mail, grid, extra`, "zzzzzzzzz")}},
		{"too high, with its unit", `{"steps":1,"cutoff":25}`, []fault.Field{flaw("value", "must be at most 20 (Å), got 25", "cutoff")}},
		{"too low", `{"steps":1,"cutoff":0.5}`, []fault.Field{flaw("value", "must be at least 1 (Å), got 0.5", "cutoff")}},
		{"wrong type", `{"steps":"1"}`, []fault.Field{flaw("type", "must be a whole number, got text", "steps")}},
		{"fraction", `{"steps":1.5}`, []fault.Field{flaw("type", "must be a whole number, got a number", "steps")}},
		{"beyond 2^53", `{"steps":9007199254740993}`, []fault.Field{flaw("value", "must be within ±9007199254740992 (2^53), got 9007199254740993", "steps")}},
		{"beyond 2^53 in a list", `{"steps":1,"grid":[5,90071992547409930]}`, []fault.Field{flaw("value", "must be within ±9007199254740992 (2^53), got 90071992547409930", "grid", 1)}},
		{"beyond the parameter's own limit", `{"steps":1,"seed":18446744073709551616}`, []fault.Field{flaw("value", "must be at most 18446744073709551615, got 18446744073709551616", "seed")}},
		{"no items", `{"steps":1,"sequences":[]}`, []fault.Field{flaw("value", "must have at least 1 item, got 0", "sequences")}},
		{"too many items", `{"steps":1,"sequences":["A","B","C","D"]}`, []fault.Field{flaw("value", "must have at most 3 items, got 4", "sequences")}},
		{"equal items", `{"steps":1,"sequences":["A","B","A"]}`, []fault.Field{flaw("value", "items 1 and 3 are equal; each can occur only once", "sequences")}},
		{"faulty items", `{"steps":1,"sequences":["A","b",""]}`, []fault.Field{
			flaw("value", `must match the pattern ^[A-Z]+$, got "b"`, "sequences", 1),
			flaw("value", `must match the pattern ^[A-Z]+$, got ""`, "sequences", 2),
			flaw("value", `must not be empty`, "sequences", 2),
		}},
		{"short text", `{"steps":1,"sequences":"AB"}`, []fault.Field{flaw("value", "must have at least 3 characters, got 2", "sequences")}},
		{"no choice", `{"steps":1,"method":"fats"}`, []fault.Field{flaw("value", `must be one of "fast", "exact", got "fats"; did you mean "fast"?`, "method")}},
		{"branch that was meant", `{"steps":1,"shape":{"radius":0}}`, []fault.Field{flaw("value", "must be more than 0, got 0", "shape", "radius")}},
		{"branch lacks a member", `{"steps":1,"shape":{"radus":1}}`, []fault.Field{flaw("missing", "is required", "shape", "radius"), flaw("unknown", `unknown member "radus": remove it`, "shape", "radus")}},
		{"no branch", `{"steps":1,"shape":5}`, []fault.Field{flaw("value", `matches none of the allowed forms: must be text, got a number; or must be an object, got a number`, "shape")}},
		{"empty reference", `{"steps":1,"text":""}`, []fault.Field{flaw("value", "must not be empty", "text")}},
		{"format", `{"steps":1,"mail":"x"}`, []fault.Field{flaw("value", `must be a valid email, got "x"`, "mail")}},
		{"long text", `{"steps":1,"mail":"` + strings.Repeat("a", 50) + `@b.de"}`, []fault.Field{flaw("value", "must have at most 30 characters, got 55", "mail")}},
		{"no multiple", `{"steps":1,"grid":[7]}`, []fault.Field{flaw("value", "must be a multiple of 5, got 7", "grid", 0)}},
		{"names of members", `{"steps":1,"extra":{"A":1}}`, []fault.Field{flaw("value", `the name "A" is not allowed`, "extra", "A")}},
		{"member that another needs", `{"steps":1,"extra":{"a":1}}`, []fault.Field{flaw("missing", `is required if "a" is given`, "extra", "b")}},
		{"too many members", `{"steps":1,"extra":{"b":1,"c":1,"d":1}}`, []fault.Field{flaw("value", "must have at most 2 members, got 3", "extra")}},
		{"NUL in a name", `{"steps":1,"extra":{"b":[{"x\u0000":1}]}}`, []fault.Field{flaw("value", "must not have a NUL character in its name", "extra", "b", 0, "x\x00")}},
		{"NUL", `{"steps":1,"extra":{"b":["\u0000"]}}`, []fault.Field{flaw("value", "must not contain a NUL character", "extra", "b", 0)}},
		{"all at once, in the order of the file", `{"nme":1,"method":1,"cutoff":"x"}`, []fault.Field{
			flaw("unknown", `demo has no setting "nme"; did you mean "note"?`, "nme"),
			flaw("type", "must be a number, got text", "cutoff"),
			flaw("missing", "is required", "steps"),
			flaw("value", `must be one of "fast", "exact", got 1`, "method"),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, faults := a.CheckSettings(parseJSON(t, tt.settings))
			must.Equal(t, "faults of "+tt.settings, faults, tt.want)
			if got != nil {
				t.Errorf("CheckSettings(%s) gives %v", tt.settings, got)
			}
		})
	}
}

func TestTextTooLongForAnArgument(t *testing.T) {
	a := parseOK(t, strings.Replace(head, `["true"]`, `["true", "{settings.s}"]`, 1)+"[[parameters]]\nname = \"s\"\nrequired = true\ntype = \"string\"\n")
	text := strings.Repeat("A", maxArgument)
	if _, faults := a.CheckSettings(parseJSON(t, `{"s":"`+text+`"}`)); faults != nil {
		t.Errorf("%d bytes: %v", len(text), faults)
	}
	if _, faults := a.CheckSettings(parseJSON(t, `{"s":"`+text+`A"}`)); len(faults) != 1 || !strings.Contains(faults[0].Msg, "at most 100 KiB") {
		t.Errorf("%d bytes: %v", len(text)+1, faults)
	}
}

func TestFileNames(t *testing.T) {
	a := parseOK(t, settingsFile)
	files := a.Parameters.Files()
	if len(files) != 1 || files[0].Name != "text" {
		t.Fatalf("file parameters %+v", files)
	}
	tests := []struct {
		file, extension string
	}{{"a.txt", ".txt"}, {"dir/A.TXT", ".txt"}, {"b.tar.gz", ".tar.gz"}, {"b.gz", ""}, {".txt", ""}, {"txt", ""}, {"a.txt.pdb", ""}}
	for _, tt := range tests {
		if got := files[0].Extension(tt.file); got != tt.extension || files[0].Accepts(tt.file) != (tt.extension != "") {
			t.Errorf("extension of %q is %q, want %q", tt.file, got, tt.extension)
		}
	}
}

// The client schema accepts what CheckSettings accepts, and normalization is idempotent.
func FuzzCheckSettings(f *testing.F) {
	a := parseOK(f, settingsFile)
	for _, s := range []string{
		`{"steps":1}`, `{"steps":1e6,"seed":5.0,"cutoff":1.5e0}`, `{"steps":1,"sequences":["A","AB"],"note":null}`,
		`{"steps":1,"shape":{"radius":1}}`, `{"steps":1,"shape":"sphere","extra":{"a":1,"b":[{"c":"\u0000"}]}}`, `{"steps":"x","grid":[5,1e300]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := strictjson.Parse(text)
		if err != nil {
			return
		}
		given, faults := a.CheckSettings(v)
		if (given == nil) == (len(faults) == 0) {
			t.Fatalf("settings %v with faults %v", given, faults)
		}
		for _, fault := range faults {
			if fault.Msg == "" || fault.Type == "" || fault.Loc == nil {
				t.Errorf("fault %+v", fault)
			}
		}
		if given == nil {
			return
		}
		normalized := string(Normalize(given))
		again, faults := a.CheckSettings(parseJSON(t, normalized))
		if len(faults) > 0 || string(Normalize(again)) != normalized {
			t.Errorf("normalized %s becomes %v, %v", normalized, again, faults)
		}
		if err := compileSettingsSchema(t, a).Validate(parseJSON(t, normalized).Any()); err != nil {
			t.Errorf("%s does not fit the schema of clients: %v", normalized, err)
		}
	})
}

func TestClientSchemaAgreesWithTheCheck(t *testing.T) {
	a := parseOK(t, settingsFile)
	schema := compileSettingsSchema(t, a)
	for _, settings := range []string{
		`{"steps":1}`, `{}`, `{"steps":1,"cutof":2}`, `{"steps":1,"cutoff":25}`, `{"steps":1.5}`, `{"steps":1,"sequences":["A","A"]}`,
		`{"steps":1,"shape":"cube"}`, `{"steps":1,"shape":{"radius":-1}}`, `{"steps":1,"text":""}`, `{"steps":1,"mail":"a@b.de"}`,
	} {
		v := parseJSON(t, settings)
		_, faults := a.CheckSettings(v)
		var invalid *jsonschema.ValidationError
		if err := schema.Validate(v.Any()); errors.As(err, &invalid) != (len(faults) > 0) {
			t.Errorf("%s: the schema says %v, the check %v", settings, err, faults)
		}
	}
}

func TestSchemaThatRefersToItself(t *testing.T) {
	a := parseOK(t, head+"[[parameters]]\nname = \"tree\"\n\"$ref\" = \"#/$defs/node\"\n\"$defs\" = { node = { type = \"object\", properties = { left = { \"$ref\" = \"#/$defs/node\" } }, additionalProperties = false } }\n")
	v := parseJSON(t, `{"tree":{"left":{"right":{}}}}`)
	_, faults := a.CheckSettings(v)
	if len(faults) != 1 || fmt.Sprint(faults[0].Loc) != "[tree left right]" {
		t.Errorf("faults %v", faults)
	}
	if err := compileSettingsSchema(t, a).Validate(v.Any()); err == nil {
		t.Error("the schema of clients does not follow the reference")
	}
}
