package plaintext

import (
	"fmt"
	"testing"

	"molrun/app/test/must"
)

func TestOutputBecomesOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " a\nb\t ": "a b", "a\x1b[1mb\x00": "a[1mb", "a\xffb": "a?b", "äöüßx": "äöüßx", "äöüßxy": "äöüßx…",
	} {
		must.Equal(t, fmt.Sprintf("%q", in), OneLine([]byte(in), 5), want)
	}
}
