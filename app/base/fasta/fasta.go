// Package fasta reads sequences as people write them: FASTA text, or one sequence without a
// header. It says what begins a record and which characters count; what letters a sequence
// may have is for those who use it.
package fasta

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"molrun/app/base/plaintext"
)

// Record is one sequence.
type Record struct {
	Header  string // behind the >
	Headed  bool   // it has a header
	Line    int    // where it begins, from 1
	Letters string // as Clean returns them, without one * at the end
	Wrap    Wrap   // of its lines
}

// ID returns the first word of the header, "" if there is none.
func (r *Record) ID() string {
	id, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(r.Header, "\t", " ")), " ")
	return id
}

// Kind is what a line of a text is.
type Kind byte

// The kinds of lines.
const (
	Nothing Kind = iota // blank, or a comment of old files
	Header
	Letters
)

// KindOf returns what a line is, which has no white space around it.
func KindOf(line string) Kind {
	switch {
	case line == "" || line[0] == ';':
		return Nothing
	case line[0] == '>':
		return Header
	}
	return Letters
}

// Parse returns the records of a text with line feeds (plaintext.Unix), no more than one beyond
// most. It accepts any text:
// one without headers is one sequence, and letters before the first header are a record
// without one, which Unsure reports.
func Parse(text []byte, most int) []Record {
	var p parser
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		p.line++
		if p.readLine(strings.TrimSpace(string(line))); len(p.records) > most {
			break
		}
	}
	p.endRecord()
	return p.records
}

// Unsure says, behind the word "has", why the first record of a text may not be one sequence,
// "" if it is one. more says that others follow it.
func Unsure(first *Record, more bool) string {
	switch {
	case first.Headed:
	case more:
		return fmt.Sprintf(`text before the first header, %q; give it a header (a line ">name") or remove it`, plaintext.Cut(first.Letters, 20))
	case first.Wrap.MayBeSeveral():
		return fmt.Sprintf(`%d lines but no header, so these may be several sequences; write a line ">name" above each sequence`, first.Wrap.Lines)
	}
	return ""
}

type parser struct {
	line    int
	records []Record
	letters strings.Builder // of the last record
}

func (p *parser) readLine(line string) {
	switch KindOf(line) {
	case Header:
		p.beginRecord(Record{Header: line[1:], Headed: true})
	case Letters:
		if len(p.records) == 0 {
			p.beginRecord(Record{})
		}
		cleaned := Clean(line)
		p.letters.WriteString(cleaned)
		p.records[len(p.records)-1].Wrap.Add(len(strings.TrimSuffix(cleaned, "*")))
	}
}

func (p *parser) beginRecord(r Record) {
	p.endRecord()
	r.Line = p.line
	p.records = append(p.records, r)
}

func (p *parser) endRecord() {
	if len(p.records) > 0 {
		p.records[len(p.records)-1].Letters = strings.TrimSuffix(p.letters.String(), "*")
	}
	p.letters.Reset()
}

// Clean drops white space and makes letters upper case. Only ASCII letters change, so that
// messages show other characters as they were given.
func Clean(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return -1
		}
		return Upper(c)
	}, text)
}

// Upper returns an ASCII letter in upper case, and any other character as it is: that of ſ
// would be the letter S.
func Upper(c rune) rune {
	if c >= 'a' && c <= 'z' {
		c += 'A' - 'a'
	}
	return c
}

// leastWrap is the least width at which programs wrap the lines of a sequence.
const leastWrap = 40

// Wrap is how a sequence is wrapped.
type Wrap struct {
	Lines       int
	first, last int // widths
	uneven      bool
}

// Add adds a line with a number of letters.
func (w *Wrap) Add(width int) {
	switch w.Lines++; w.Lines {
	case 1:
		w.first = width
	case 2:
	default:
		w.uneven = w.uneven || w.last != w.first
	}
	w.last = width
}

// MayBeSeveral reports whether the lines of a record without a header may be sequences of
// their own: they are not one sequence wrapped at a fixed width.
func (w *Wrap) MayBeSeveral() bool {
	return w.Lines > 1 && (w.uneven || w.first < leastWrap || w.last > w.first)
}
