package results

import (
	"regexp"
	"strings"
	"unicode"

	"molrun/app/base/plaintext"
)

const (
	maxErrorLine = 300 // bytes
	searchedFor  = 40  // lines from the end, for one that says what went wrong
)

// trouble matches lines that report a failure. Many programs print advice, rules or a
// farewell after it.
var trouble = regexp.MustCompile(`(?i)\b(error|fatal|exception|abort(ed)?|cannot|can't|could not|couldn't|unable|fail(ed|ure)?|invalid|illegal|missing|not found|no such|unknown|unrecogni[sz]ed|unexpected|undefined|refused|denied|overflow|nan)\b|Error:`)

// LastErrorLine returns the line at the end of a log that says most about a failure: the last
// that names some trouble, or else the last that says anything. "" if none does.
func LastErrorLine(logTail string) string {
	last, seen := "", 0
	lines := strings.Split(logTail, "\n")
	for i := len(lines) - 1; i >= 0 && seen < searchedFor; i-- {
		line := strings.TrimSpace(lines[i])
		if !hasWords(line) {
			continue
		}
		seen++
		if trouble.MatchString(line) {
			return plaintext.OneLine([]byte(line), maxErrorLine)
		}
		if last == "" {
			last = plaintext.OneLine([]byte(line), maxErrorLine)
		}
	}
	return last
}

// hasWords reports whether a line has words that a program has written.
func hasWords(line string) bool {
	letters := 0
	for _, r := range line {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= 2 && !strings.HasPrefix(line, "[molrun: ")
}
