package plaintext

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestNearest(t *testing.T) {
	known := []string{"jobName", "type", "settings", "version"}
	for name, want := range map[string]string{"jobname": "jobName", "setings": "settings", "typ": "type", "quantum": ""} {
		must.Equal(t, fmt.Sprintf("Nearest(%q)", name), Nearest(name, known), want)
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
		must.Equal(t, fmt.Sprintf("%s of %s", tt.name, tt.known), Nearest(tt.name, []string{tt.known}), tt.want)
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
		must.Equal(t, fmt.Sprintf("from %q to %q", tt.a, tt.b), editDistance(tt.a, tt.b), tt.want)
	}
}
