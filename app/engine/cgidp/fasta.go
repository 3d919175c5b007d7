package cgidp

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// record is one sequence of a FASTA text.
type record struct {
	id      string // first word of the header, made fit for a file name; or ""
	letters string // upper case, without white space and one trailing "*"
	lines   []int  // letters of each line
	headed  bool   // it has a header
}

// parseFASTA splits a text into records. A text without headers is one sequence.
// It accepts any text: the letters are checked afterwards.
func parseFASTA(text []byte) []record {
	var records []record
	var letters strings.Builder
	var now record
	open := false
	end := func() {
		if open {
			now.letters = cleanSequence(letters.String())
			records = append(records, now)
		}
		letters.Reset()
	}
	for line := range bytes.SplitSeq(withUnixLines(text), []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == ';': // ';' begins a comment in old files
		case line[0] == '>':
			end()
			now, open = record{id: recordID(string(line[1:])), headed: true}, true
		default:
			open = true
			letters.Write(line)
			letters.WriteByte('\n') // parts bytes that are no letters; dropped later
			now.lines = append(now.lines, len(cleanSequence(string(line))))
		}
	}
	end()
	return records
}

func withUnixLines(text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
}

// recordID takes the first word of a header. Characters that a file name should
// not have, as in sp|P37840|SYUA_HUMAN, become "_".
func recordID(header string) string {
	words := strings.Fields(header)
	if len(words) == 0 {
		return ""
	}
	id := strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && isNameByte(byte(c)) {
			return c
		}
		return '_'
	}, words[0])
	return id[:min(len(id), maxNameLength)]
}

// cleanSequence drops white space and one trailing "*", the stop sign of
// translated sequences. Only plain letters change their case, so that others
// are told as they were given.
func cleanSequence(text string) string {
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

// leastWrap is where lines of one sequence are broken at the earliest.
const leastWrap = 40

// severalLines tells whether the lines of a record without a header may be
// sequences of their own: they are not one sequence broken at a fixed width.
func (r record) severalLines() bool {
	if r.headed || len(r.lines) < 2 {
		return false
	}
	width, last := r.lines[0], len(r.lines)-1
	for _, n := range r.lines[:last] {
		if n != width {
			return true
		}
	}
	return width < leastWrap || r.lines[last] > width
}
