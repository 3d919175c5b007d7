package tomltree

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestMistakesOfTOML(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"date", "a = 2024-01-01", "1: write a date or time as text"},
		{"infinity", "a = inf", "1: the number inf is out of range"},
		{"huge number", "\na = 1e999", "2: "},
		{"key twice", "a = \"a\"\n\na = \"b\"", `3: "a" is defined twice, first on line 1`},
		{"table twice", "[a]\nb = 1\n[c]\n[a]\nd = 1", "4: [a] is defined twice, first on line 1"},
		{"table over a value", "a = \"a\"\n[a.b]", `2: "a" is not a table: line 1 gives it another value`},
		{"list over a value", "a = \"a\"\n[[a]]", "2: [[a]] is not a list: line 1 defines it differently"},
		{"value over an inline table", "a = { b = 1 }\na.b = 2", "2: "},
		{"no TOML", "a = ", "1: this is not TOML"},
		{"no TOML in a late line", "a = \"a\"\n\n\nx y", "4: this is not TOML"},
		{"open text", "a = \"a", "1: this is not TOML"},
		{"invalid UTF-8", "a = 1\nb = \"\xff\"", "2: the text is not valid UTF-8"},
		{"deep", "a = " + strings.Repeat("[", 20000), "1: this is not TOML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Parse([]byte(tt.text)).Errors()
			if len(got) != 1 || !strings.HasPrefix(fmt.Sprintf("%d: %s", got[0].Line, got[0].Msg), tt.want) {
				t.Errorf("mistakes %v, want %q", got, tt.want)
			}
		})
	}
}

func TestTreeKeepsOrderNumbersAndLines(t *testing.T) {
	const text = "z = 1_000.50\na = 0x1F\n[t]\nlist = [1,\n  { b = true }]\n[[items]]\nc = '''d\"'''\n[[items]]\n"
	r := Parse([]byte(text))
	if wrong := r.Errors(); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if got, want := string(r.Root.AppendJSON(nil)), `{"z":1000.50,"a":31,"t":{"list":[1,{"b":true}]},"items":[{"c":"d\""},{}]}`; got != want {
		t.Errorf("tree %s, want %s", got, want)
	}
	for line, path := range map[int][]any{1: {"z"}, 3: {"t"}, 5: {"t", "list", 1, "b"}, 7: {"items", 0, "c", "none"}, 8: {"items", 1}} {
		must.Equal(t, fmt.Sprintf("line of %v", path), r.Root.LineAt(path), line)
	}
	must.Equal(t, "last line of [t]", r.Root.Member("t").LastLine(), 5)
}
