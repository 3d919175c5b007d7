package naming

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestNames(t *testing.T) {
	good := []string{"a", "a-b", "ä", "a b", "hst5", "Probe 7 (β)", "x.", "-x", "-rf", "...", "C:", "~", strings.Repeat("é", 200), "名前"}
	bad := []string{
		"", ".", "..", "a/b", `a\b`, " a", "a ", "a\x00b", "a\nb", "a\u202eb", "e\u0301", "\xff",
		strings.Repeat("a", 201), "a\u2066b", "\u00a0a", "a\u2028b",
		"a\u00adb", "a\u200bb", "a\u200cb", "a\u200db", "a\u2060b", "a\ufeffb", "\ufeffa",
		"\ufeff", "\u200b", "\u200b\u200d", "\u3164", "\u2800", "\u034f",
	}
	for _, name := range good {
		must.Equal(t, fmt.Sprintf("CheckName(%q)", name), CheckName(name), "")
	}
	for _, name := range bad {
		if CheckName(name) == "" {
			t.Errorf("CheckName(%q) accepts it", name)
		}
	}
	for _, part := range []rune{'/', '\\', '\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069'} {
		for _, name := range []string{string(part) + "a", "a" + string(part), "a" + string(part) + "b"} {
			if CheckName(name) == "" {
				t.Errorf("CheckName(%+q) accepts it", name)
			}
		}
	}
	for _, name := range []string{"-rf", "a.", strings.Repeat("é", 128), "a\u200bb"} {
		if CheckFilename(name) == "" {
			t.Errorf("CheckFilename(%q) accepts it", name)
		}
	}
	for email, ok := range map[string]bool{"ann@lab.example": true, "ann": false, "a\u200bb@lab.example": false} {
		if got := CheckEmail(email); (got == "") != ok {
			t.Errorf("CheckEmail(%q) = %q", email, got)
		}
	}
	for folder, ok := range map[string]bool{
		"inputs": true, "a/b/c": true, "a//b": false, "/a": false, "a/": false, "a/../b": false, "": false, "in/a\u200bb": false, strings.Repeat("é", 128): false,
		"1/2/3/4/5/6/7/8": true, "1/2/3/4/5/6/7/8/9": false,
	} {
		if got := CheckFolder(folder); (got == "") != ok {
			t.Errorf("CheckFolder(%q) = %q", folder, got)
		}
	}
}

func TestTagsAndNotes(t *testing.T) {
	for _, tt := range []struct {
		key, value string
		ok         bool
	}{
		{"target", "6LU7", true},
		{"run/set", `a\b: c`, true},
		{strings.Repeat("é", 64), strings.Repeat("é", 200), true},
		{strings.Repeat("k", 65), "v", false},
		{"k", strings.Repeat("v", 201), false},
		{"a:b", "v", false},
		{"", "v", false},
		{"k", "", false},
		{"k", "a\nb", false},
		{"k\u202e", "v", false},
		{"k\u200b", "v", false},
	} {
		if msg := CheckTag(tt.key, tt.value); (msg == "") != tt.ok {
			t.Errorf("CheckTag(%q, %q) = %q", tt.key, tt.value, msg)
		}
	}
	for note, ok := range map[string]bool{
		"": true, "One.\n\tTwo é.": true, strings.Repeat("n", 4096): true,
		strings.Repeat("n", 4097): false, "a\r\nb": false, "a\x1bb": false, "\xff": false, "a\u202eb": false,
	} {
		if msg := CheckNote(note); (msg == "") != ok {
			t.Errorf("CheckNote(%q) = %q", note, msg)
		}
	}
}

// FuzzNames checks that every accepted name is safe to display and to put in a header.
func FuzzNames(f *testing.F) {
	f.Add("hst5")
	f.Add("a\u202eb")
	f.Add("..")
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != "" && CheckFilename(name) != "" {
			return
		}
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00\n\r\x7f\u202e") {
			t.Fatalf("accepted %q", name)
		}
	})
}
