package protocol

import (
	"strings"
	"testing"
)

func TestTextIsCleanedAndBounded(t *testing.T) {
	long := strings.Repeat("ä", mostLetters)
	for in, want := range map[string]string{
		" a\x00\nb ": "ab", "a\xffb": "a\uFFFDb", long: long, long + "b": long, "\x1b": "",
	} {
		if got := CleanText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
