package tomltree

import (
	"fmt"
	"testing"

	"molrun/app/test/must"
)

// TestValuesAreReadOrTheirMistakesNoted reads values inside and outside the allowed
// limits.
func TestValuesAreReadOrTheirMistakesNoted(t *testing.T) {
	t.Parallel()
	within := func(r *Reader) any { return r.Within(r.Root.Member("a"), "a", 1, 3) }
	line := func(r *Reader) any { return r.Line(r.Root, "a") }
	for text, tt := range map[string]struct {
		read  func(*Reader) any
		value string
		wrong string
	}{
		"a = 1":      {within, "1", "[]"},
		"a = 3":      {within, "3", "[]"},
		"a = 0":      {within, "0", "[{1 a must be between 1 and 3, got 0}]"},
		"a = 4":      {within, "4", "[{1 a must be between 1 and 3, got 4}]"},
		"a = 1.5":    {within, "0", "[{1 a must be a whole number, got 1.5}]"},
		`a = "1"`:    {within, "0", "[]"},
		`a = "word"`: {line, "word", "[]"},
		`a = "a\nb"`: {line, "a\nb", "[{1 a must be one line}]"},
		"a = 5":      {line, "", "[]"},
		"b = 5":      {line, "", "[]"},
	} {
		r := Parse([]byte(text))
		if got := fmt.Sprint(tt.read(r)); got != tt.value || fmt.Sprint(r.Errors()) != tt.wrong {
			t.Errorf("%s: %q and %v, want %q and %s", text, got, r.Errors(), tt.value, tt.wrong)
		}
	}
}

func TestListsInWords(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "b", "c"}
	for n, want := range []string{"", `"a"`, `"a" or "b"`, `"a", "b" or "c"`} {
		must.Equal(t, fmt.Sprintf("%d texts", n), OrList(texts[:n]), want)
	}
}
