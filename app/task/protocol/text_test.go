package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestWarningsAreBounded(t *testing.T) {
	var all []string
	for k := range 30 {
		all = AddWarning(AddWarning(all, strconv.Itoa(k)), "0")
	}
	if len(all) != mostWarnings || all[0] != "0" || all[18] != "18" || !strings.HasPrefix(all[19], "More warnings") {
		t.Errorf("warnings %q", all)
	}
}

func TestTextIsCleanedAndBounded(t *testing.T) {
	long := strings.Repeat("ä", mostLetters)
	for in, want := range map[string]string{
		" a\x00\nb ": "ab", "a\xffb": "a\uFFFDb", long: long, long + "b": long, "\x1b": "",
	} {
		must.Equal(t, fmt.Sprintf("%q", in), CleanText(in), want)
	}
}
