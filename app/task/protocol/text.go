package protocol

import (
	"slices"
	"strings"
	"unicode"
)

// What is shown at most of a text, and of a warning, in letters.
const (
	mostLetters = 200
	mostOfOne   = 500
)

// CleanText makes a program's output fit to be shown to users: at most 200
// letters, without control characters.
func CleanText(text string) string { return clean(text, mostLetters) }

// CleanWarning does so for a warning, of at most 500 letters.
func CleanWarning(text string) string { return clean(text, mostOfOne) }

// mostWarnings are kept of a task.
const mostWarnings = 20

// AddWarning adds a warning to those of a task. Repetitions are left out, and the last place
// is for what says that there are more.
func AddWarning(all []string, text string) []string {
	switch {
	case slices.Contains(all, text):
		return all
	case len(all) >= mostWarnings:
		all[mostWarnings-1] = "There are more warnings than are shown here; the log has them all."
		return all
	}
	return append(all, text)
}

func clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if letters := []rune(text); len(letters) > most {
		text = string(letters[:most])
	}
	return text
}
