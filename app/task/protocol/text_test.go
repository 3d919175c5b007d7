package protocol

import (
	"strconv"
	"strings"
	"testing"
)

func TestWarningsAreBounded(t *testing.T) {
	var all []string
	for k := range 30 {
		all = AddWarning(AddWarning(all, strconv.Itoa(k)), "0")
	}
	if len(all) != mostWarnings || all[0] != "0" || all[18] != "18" || !strings.HasPrefix(all[19], "There are more") {
		t.Errorf("warnings %q", all)
	}
}

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
