package protocol

import (
	"strings"
	"unicode"
)

const mostLetters = 200

// CleanText makes a program's output fit to be shown to users: at most 200
// letters, without control characters.
func CleanText(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if letters := []rune(text); len(letters) > mostLetters {
		text = string(letters[:mostLetters])
	}
	return text
}
