package plaintext

import (
	"bytes"
	"strings"
	"unicode"
)

// OneLine returns a program's output as one line of a limited number of characters.
func OneLine(b []byte, most int) string {
	return Cut(strings.TrimSpace(Printable(b)), most)
}

// Printable replaces line breaks and other space by spaces and leaves out what
// cannot be shown.
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

// ShellWord makes any text one word of a POSIX shell.
func ShellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Cut shortens a text to a number of characters and marks the cut.
func Cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
