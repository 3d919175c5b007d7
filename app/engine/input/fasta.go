package input

import (
	"bytes"
	"strings"
	"unicode"

	"molrun/app/base/plaintext"
)

// Record is one sequence of a FASTA text.
type Record struct {
	Name    string // from the first word of the header, fit for a file name; or ""
	Letters string // upper case, without white space and one trailing "*"
	Lines   []int  // number of letters of each line
	Headed  bool   // it has a header
}

// ParseFASTA splits a text into records. A text without headers is one sequence.
// Any text is accepted: checkSequence looks at the letters.
func ParseFASTA(text []byte) []Record {
	var records []Record
	var letters strings.Builder
	var current Record
	open := false
	finish := func() {
		if open {
			current.Letters = clean(letters.String())
			records = append(records, current)
		}
		letters.Reset()
	}
	for line := range bytes.SplitSeq(plaintext.Unix(text), []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == ';': // ';' begins a comment in old files
		case line[0] == '>':
			finish()
			current, open = Record{Name: nameFrom(string(line[1:])), Headed: true}, true
		default:
			open = true
			letters.Write(line)
			letters.WriteByte('\n') // separates bytes that are not UTF-8; removed later
			current.Lines = append(current.Lines, len(clean(string(line))))
		}
	}
	finish()
	return records
}

// clean drops white space and one trailing "*", which marks the stop of a
// translated sequence. Only ASCII letters change their case, so that messages
// show other characters as they were given.
func clean(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return -1
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		}
		return c
	}, text)
	return strings.TrimSuffix(text, "*")
}

// leastWrap is the least width at which programs wrap the lines of a sequence.
const leastWrap = 40

// mayBeSeveral reports whether the lines of a record without a header may be
// sequences of their own: they are not one sequence wrapped at a fixed width.
func (r Record) mayBeSeveral() bool {
	if r.Headed || len(r.Lines) < 2 {
		return false
	}
	width, last := r.Lines[0], len(r.Lines)-1
	for _, n := range r.Lines[:last] {
		if n != width {
			return true
		}
	}
	return width < leastWrap || r.Lines[last] > width
}
