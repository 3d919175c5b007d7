package results

import (
	"regexp"
	"strings"
	"unicode"

	"molrun/app/base/plaintext"
)

const (
	maxErrorLine = 300 // bytes
	searchedFor  = 40  // lines from the end searched for an error
)

// trouble matches lines that report a failure. Many programs print advice, separators or
// a closing message after it.
var trouble = regexp.MustCompile(`(?i)\b(error|fatal|exception|abort(ed)?|cannot|can't|could not|couldn't|unable|fail(ed|ure)?|invalid|illegal|missing|not found|no such|unknown|unrecogni[sz]ed|unexpected|undefined|refused|denied|overflow|nan)\b|Error:`)

// LastErrorLine returns the most informative line at the end of a log of a failed job:
// the last line that reports an error, otherwise the last line with words. It returns ""
// if there is neither.
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

// hasWords reports whether a line contains words written by a program.
func hasWords(line string) bool {
	letters := 0
	for _, r := range line {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= 2 && !strings.HasPrefix(line, "[molrun: ")
}
