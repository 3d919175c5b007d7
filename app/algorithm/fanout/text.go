package fanout

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"molrun/app/base/plaintext"
)

// mistake is something wrong in a text. Line 0 is the whole of it.
type mistake struct {
	line int
	kind string
	msg  string
}

func wrong(line int, format string, args ...any) mistake {
	return mistake{line: line, kind: "value", msg: fmt.Sprintf(format, args...)}
}

var (
	bomsUTF16 = [][]byte{{0xff, 0xfe}, {0xfe, 0xff}}
	lineFeed  = []byte("\n")
)

// readText returns text in UTF-8 without a byte order mark, lines ending with a
// line feed. It finds what no text file has.
func readText(data []byte) ([]byte, []mistake) {
	for _, bom := range bomsUTF16 {
		if bytes.HasPrefix(data, bom) {
			return nil, []mistake{wrong(0, "the text is UTF-16; save it as UTF-8")}
		}
	}
	data = plaintext.Unix(data)
	if i := slices.IndexFunc(data, isControl); i >= 0 {
		return nil, []mistake{wrong(lineAt(data, i), "the text has the control character %U; is this a text file?", data[i])}
	}
	if !utf8.Valid(data) {
		return nil, []mistake{wrong(lineAt(data, invalidAt(data)), "the text is not valid UTF-8; save it as UTF-8")}
	}
	return data, nil
}

// isControl reports whether text that people can read has no such byte.
func isControl(b byte) bool { return b < ' ' && b != '\t' && b != '\n' || b == 0x7f }

// invalidAt returns where text that is not valid UTF-8 begins to be so.
func invalidAt(data []byte) (at int) {
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

func lineAt(data []byte, i int) int { return 1 + bytes.Count(data[:i], lineFeed) }
