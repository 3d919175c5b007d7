package plaintext

import (
	"fmt"
	"testing"

	"molrun/app/test/must"
)

func TestOutputAsItStandsOnATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[32mINFO\x1b[0m loading\n":                "INFO loading\n",
		"\r\x1b[K  0%|\r\x1b[K 50%|\r\x1b[K100%|\nend": "100%|\nend",
		"\x1b]0;title\x07\x1b[2J\x1b[Hcleared\r\n\r\n": "cleared\n\n",
		"plain\ttext": "plain\ttext",
		"half\r":      "half",
		"":            "",
	} {
		must.Equal(t, fmt.Sprintf("%q", in), OnTerminal(in), want)
	}
}
