package input

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNameLength is the maximum length of a name in bytes.
const maxNameLength = 64

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '.' || c == '-'
}

// checkName returns what is wrong with a folder name and how to correct it, as the
// predicate of a sentence. It returns "" if the name is valid.
func checkName(name string) string {
	switch {
	case name == "":
		return "is empty; write at least one letter"
	case len(name) > maxNameLength:
		return fmt.Sprintf("is too long; use at most %d characters", maxNameLength)
	case strings.HasPrefix(name, "."):
		return "begins with a dot; begin it with a letter or digit"
	}
	for _, c := range name {
		if c >= utf8.RuneSelf || !isNameByte(byte(c)) {
			return fmt.Sprintf("has the character %q; use only the letters A to Z, digits, '_', '.' and '-'", c)
		}
	}
	return ""
}

// nameFrom returns the first word of a FASTA header. Characters unsuitable for file
// names, as in sp|P37840|SYUA_HUMAN, become "_".
func nameFrom(header string) string {
	words := strings.Fields(header)
	if len(words) == 0 {
		return ""
	}
	name := strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && isNameByte(byte(c)) {
			return c
		}
		return '_'
	}, words[0])
	return name[:min(len(name), maxNameLength)]
}
