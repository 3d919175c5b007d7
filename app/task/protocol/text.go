package protocol

import (
	"slices"
	"strings"
	"unicode"
)

// Limits on the number of characters of a program's text, and of a warning.
const (
	mostLetters = 200
	mostOfOne   = 500
)

// CleanText makes a program's output fit to be shown to users: at most 200 characters,
// without control characters.
func CleanText(text string) string { return clean(text, mostLetters) }

// CleanWarning is like CleanText for a warning of at most 500 characters.
func CleanWarning(text string) string { return clean(text, mostOfOne) }

// mostWarnings limits the warnings kept per task.
const mostWarnings = 20

// AddWarning adds a warning to those of a task, unless it is a duplicate. The last slot
// is for a note that there are more.
func AddWarning(all []string, text string) []string {
	switch {
	case slices.Contains(all, text):
		return all
	case len(all) >= mostWarnings:
		all[mostWarnings-1] = "More warnings were omitted; see the log for all of them."
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
