package tomltree

import (
	"fmt"
	"regexp"
	"testing"
)

// TestValuesAreReadOrTheirMistakesNoted asks for values at and beyond what is
// allowed.
func TestValuesAreReadOrTheirMistakesNoted(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`^[a-z]+$`)
	within := func(r *Reader) any { return r.Within(r.Root.Member("a"), "a", 1, 3) }
	name := func(r *Reader) any { return r.Name(r.Root, "a", word, "small letters") }
	for text, tt := range map[string]struct {
		read  func(*Reader) any
		value string
		wrong string
	}{
		"a = 1":       {within, "1", "[]"},
		"a = 3":       {within, "3", "[]"},
		"a = 0":       {within, "0", "[{1 a must be between 1 and 3, got 0}]"},
		"a = 4":       {within, "4", "[{1 a must be between 1 and 3, got 4}]"},
		"a = 1.5":     {within, "0", "[{1 a must be a whole number, got 1.5}]"},
		`a = "1"`:     {within, "0", "[{1 a must be a number, got a text}]"},
		`a = "word"`:  {name, "word", "[]"},
		`a = "Word"`:  {name, "Word", `[{1 a "Word" is not allowed: use small letters}]`},
		"a = 5":       {name, "", "[{1 a must be a text, got a number}]"},
		`b = "other"`: {name, "", "[{1 a is missing}]"},
	} {
		r := Parse([]byte(text), nil)
		if got := fmt.Sprint(tt.read(r)); got != tt.value || fmt.Sprint(r.Mistakes()) != tt.wrong {
			t.Errorf("%s: %q and %v, want %q and %s", text, got, r.Mistakes(), tt.value, tt.wrong)
		}
	}
}

func TestListsInWords(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "b", "c"}
	for n, want := range []string{"", `"a"`, `"a" or "b"`, `"a", "b" or "c"`} {
		if got := OrList(texts[:n]); got != want {
			t.Errorf("%d texts: %s, want %s", n, got, want)
		}
	}
}
