package plaintext

import (
	"bytes"
	"strings"
	"unicode"
)

// OneLine returns a program's output as one line of at most this many characters.
func OneLine(b []byte, most int) string {
	return Cut(strings.TrimSpace(Printable(b)), most)
}

// Printable replaces line breaks and other white space with spaces and removes characters
// that can't be displayed.
func Printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(bytes.ToValidUTF8(b, []byte("?"))))
}

// ShellWord quotes any text as one word for a POSIX shell.
func ShellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Cut shortens text to a number of characters and marks the cut.
func Cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
