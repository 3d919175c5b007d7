// Package naming checks the names of jobs, files, folders and users, and parses the file
// references in settings.
package naming

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of names.
const (
	maxNameRunes    = 200
	maxNameBytes    = 255
	maxFolderLevels = 8
)

// CheckName returns what is wrong with the name of a job or batch, or "" if it is valid.
// Names are 1 to 200 characters of NFC text that is harmless in paths, terminals and
// shells. Nevertheless, they are never used as a path.
func CheckName(name string) string {
	if n := utf8.RuneCountInString(name); n > maxNameRunes {
		return fmt.Sprintf("use at most %d characters, not %d", maxNameRunes, n)
	}
	return checkText(name)
}

// CheckFilename returns what is wrong with a file name, or "" if it is valid.
func CheckFilename(name string) string {
	switch {
	case len(name) > maxNameBytes:
		return fmt.Sprintf("use at most %d bytes, not %d", maxNameBytes, len(name))
	case strings.HasPrefix(name, "-"):
		return `start the name with something other than "-"`
	case strings.HasSuffix(name, "."):
		return `end the name with something other than "."`
	}
	return checkText(name)
}

// CheckFolder returns what is wrong with a folder, which is up to 8 names joined by "/",
// or "" if it is valid.
func CheckFolder(folder string) string {
	parts := strings.Split(folder, "/")
	if len(parts) > maxFolderLevels {
		return fmt.Sprintf("use at most %d levels of folders, not %d", maxFolderLevels, len(parts))
	}
	for _, part := range parts {
		if msg := CheckFilename(part); msg != "" {
			if len(parts) > 1 {
				msg = fmt.Sprintf("part %q: %s", part, msg)
			}
			return msg
		}
	}
	return ""
}

// Limits of tags and notes.
const (
	maxTagKeyRunes   = 64
	maxTagValueRunes = 200
	maxNoteBytes     = 4096
)

// CheckTag returns what is wrong with a tag, or "" if it is valid. Filters write a tag as
// key:value, so a key can't contain a colon.
func CheckTag(key, value string) string {
	switch {
	case utf8.RuneCountInString(key) > maxTagKeyRunes:
		return fmt.Sprintf("use a key of at most %d characters", maxTagKeyRunes)
	case strings.Contains(key, ":"):
		return "use a key without a colon"
	case utf8.RuneCountInString(value) > maxTagValueRunes:
		return fmt.Sprintf("use a value of at most %d characters", maxTagValueRunes)
	}
	if msg := checkPrintable(key); msg != "" {
		return "key: " + msg
	}
	return checkPrintable(value)
}

// CheckNote returns what is wrong with a multiline note, or "" if it is valid.
func CheckNote(note string) string {
	switch {
	case len(note) > maxNoteBytes:
		return fmt.Sprintf("use at most %d bytes, not %d", maxNoteBytes, len(note))
	case !utf8.ValidString(note):
		return "use valid UTF-8"
	}
	for _, r := range note {
		if r != '\n' && r != '\t' && isHidden(r) {
			return fmt.Sprintf("remove the invisible character %U", r)
		}
	}
	return ""
}

func checkText(s string) string {
	if s == "." || s == ".." {
		return `use a name other than "." and ".."`
	}
	if i := strings.IndexAny(s, `/\`); i >= 0 {
		return fmt.Sprintf("use a name without %q", s[i])
	}
	return checkPrintable(s)
}

// checkPrintable returns why a line of text would not be displayed exactly as written, or
// "" if it would.
func checkPrintable(s string) string {
	switch {
	case s == "":
		return "enter at least one character"
	case !utf8.ValidString(s):
		return "use valid UTF-8"
	case strings.TrimSpace(s) != s:
		return "remove the space at the beginning or end"
	case !norm.NFC.IsNormalString(s):
		return "use Unicode normal form C (NFC)"
	}
	if !strings.ContainsFunc(s, isVisible) {
		return "use at least one visible character"
	}
	for _, r := range s {
		if isHidden(r) || strings.ContainsRune(invisible, r) {
			return fmt.Sprintf("remove the invisible character %U", r)
		}
	}
	return ""
}

// invisible lists characters that can make two different names look the same. Notes can
// contain them, because some scripts and symbols need joiners.
const invisible = "\u00ad\u200b\u200c\u200d\u2060\ufeff"

// blanks lists letters and symbols that are displayed as empty space: the Hangul fillers
// and the empty Braille pattern.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

func isVisible(r rune) bool {
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Mn, r) && !strings.ContainsRune(blanks, r)
}

// isHidden reports whether r is not displayed itself, but controls lines, terminals or
// the surrounding text.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || isBidi(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// isBidi reports whether r changes the direction of the surrounding text.
func isBidi(r rune) bool {
	return r == '\u061c' || r == '\u200e' || r == '\u200f' || '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
}

// CheckEmail returns what is wrong with a user's e-mail address, or "" if it is valid.
func CheckEmail(email string) string {
	local, domain, found := strings.Cut(email, "@")
	visible := strings.ContainsFunc(local, isVisible) && strings.ContainsFunc(domain, isVisible)
	if !found || !visible || strings.ContainsAny(email, " \t,;<>") {
		return "enter an e-mail address such as ann@lab.example"
	}
	return CheckFilename(email)
}

// Extension returns the lower-case extension of a file name, including the dot.
func Extension(name string) string { return strings.ToLower(path.Ext(name)) }

// Composed returns a name in NFC, the form of file and folder names. macOS file systems
// return names in another form.
func Composed(name string) string { return norm.NFC.String(name) }

// Fold returns text in the form that searches compare: in lower case and NFC.
func Fold(text string) string { return Composed(strings.ToLower(text)) }
