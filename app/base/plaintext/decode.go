package plaintext

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// FileError is an error in a file. Line 0 means the whole file.
type FileError struct {
	Line int
	Msg  string
}

func (w *FileError) Error() string {
	if w.Line == 0 {
		return w.Msg
	}
	return fmt.Sprintf("line %d: %s", w.Line, w.Msg)
}

// Decode converts text to UTF-8 without a byte order mark, with lines that end with a
// line feed. It accepts UTF-8, UTF-16 with a byte order mark, and Windows-1252, which
// Western European spreadsheets use. It rejects ambiguous text and control characters.
func Decode(text []byte) ([]byte, *FileError) {
	r := NewReader(bytes.NewReader(text))
	unix, _ := io.ReadAll(r) // reading from memory can't fail
	if wrong := Control(unix); wrong != nil {
		return nil, wrong
	}
	if utf8.Valid(unix) {
		return unix, nil
	}
	return fromWindows(unix, r.Returns)
}

// Control returns an error for the first control character in text that should be
// readable, or nil if there is none. Lines must end with a line feed.
func Control(text []byte) *FileError { return controlAt(text, slices.IndexFunc(text, isControl)) }

// Zero is like Control, but allows control characters other than zero.
func Zero(text []byte) *FileError { return controlAt(text, bytes.IndexByte(text, 0)) }

func controlAt(text []byte, i int) *FileError {
	switch {
	case i < 0:
		return nil
	case isWideUnmarked(text):
		return &FileError{lineAt(text, i), "the text is UTF-16 without a byte order mark; save it as UTF-8"}
	}
	return &FileError{lineAt(text, i), fmt.Sprintf("the text has the control character %U; is this a text file?", text[i])}
}

// isControl reports whether b does not occur in readable text.
func isControl(b byte) bool { return b < ' ' && b != '\t' && b != '\n' || b == 0x7f }

func lineAt(text []byte, i int) int { return 1 + bytes.Count(text[:i], []byte("\n")) }

// isWideUnmarked reports whether every other byte at the beginning is zero.
func isWideUnmarked(text []byte) bool {
	head := text[:min(len(text), 16)]
	zeros := [2]int{}
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	return len(head) >= 4 && (zeros[0] == 0 && zeros[1] == len(head)/2 || zeros[1] == 0 && zeros[0] == (len(head)+1)/2)
}

// fromWindows decodes text that is not valid UTF-8. It returns an error if the text also
// has UTF-8 characters or old Mac line endings, because the encoding is then unknown.
func fromWindows(text []byte, ofOldMac bool) ([]byte, *FileError) {
	decoded := make([]byte, 0, len(text)+len(text)/8)
	var several bool
	first := -1
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case size > 1:
			several = true
		case r == utf8.RuneError:
			if first < 0 {
				first = i
			}
			if r = windows(text[i]); r == utf8.RuneError {
				return nil, &FileError{lineAt(text, i), fmt.Sprintf("the text is neither UTF-8 nor Windows-1252 (byte %#x); save it as UTF-8", text[i])}
			}
		}
		decoded = utf8.AppendRune(decoded, r)
		i += size
	}
	switch {
	case several:
		return nil, &FileError{lineAt(text, first), "the text is only partly UTF-8; save it as UTF-8"}
	case ofOldMac:
		return nil, &FileError{lineAt(text, first), "the text has old Mac line endings and letters in an unknown encoding; save it as UTF-8"}
	}
	return decoded, nil
}

// windows returns the Windows-1252 character for a byte of at least 0x80, or U+FFFD if
// there is none.
func windows(b byte) rune {
	if b >= 0xa0 {
		return rune(b)
	}
	return []rune("€\uFFFD‚ƒ„…†‡ˆ‰Š‹Œ\uFFFDŽ\uFFFD\uFFFD‘’“”•–—˜™š›œ\uFFFDžŸ")[b-0x80]
}
