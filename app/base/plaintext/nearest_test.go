package plaintext

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"jobName", "type", "settings", "version"}
	for name, want := range map[string]string{"jobname": "jobName", "setings": "settings", "typ": "type", "quantum": ""} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSuggestionsAreAsCloseAsTheirLengthAllows(t *testing.T) {
	for _, tt := range []struct {
		name, known, want string
	}{
		{"abc", "abd", "abd"},
		{"abcdef", "abxxef", "abxxef"},
		{"abcdef", "axxxef", ""},
		{"abcdefghi", "abcxxxghi", "abcxxxghi"},
		{"abcdefghi", "abxxxxghi", ""},
	} {
		if got := Nearest(tt.name, []string{tt.known}); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.name, tt.known, got, tt.want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "ab", 2},
		{"ab", "", 2},
		{"ab", "ba", 2},
		{"kitten", "sitting", 3},
		{"abc", "bc", 1},
		{"bc", "abc", 1},
		{strings.Repeat("a", 100), strings.Repeat("a", 99), 1},
		{strings.Repeat("a", 101), strings.Repeat("a", 101), 100},
	} {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("from %q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
