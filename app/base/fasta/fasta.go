// Package fasta reads sequences as people write them: FASTA text, or one sequence without
// a header. It determines where a record starts and which characters count; its callers
// decide which letters a sequence can have.
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
	Header  string // the text after >
	Headed  bool   // it has a header
	Line    int    // line number of its start, from 1
	Letters string // as returned by Clean, without a final *
	Wrap    Wrap   // how its lines are wrapped
}

// ID returns the first word of the header, or "" if there is none.
func (r *Record) ID() string {
	id, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(r.Header, "\t", " ")), " ")
	return id
}

// Kind is the kind of a line.
type Kind byte

// The kinds of lines.
const (
	Nothing Kind = iota // blank, or an old-style comment
	Header
	Letters
)

// KindOf returns the kind of a line, which must have no surrounding white space.
func KindOf(line string) Kind {
	switch {
	case line == "" || line[0] == ';':
		return Nothing
	case line[0] == '>':
		return Header
	}
	return Letters
}

// Parse returns the records in text whose lines end with a line feed (see
// plaintext.Unix), but no more than most+1. It accepts any text: if there are no headers,
// the text is one sequence, and letters before the first header form a record without a
// header, which Unsure reports.
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

// Unsure explains why the first record of a file might not be one sequence, or returns ""
// if it is one. The explanation completes a sentence that ends with "has". more says that
// other records follow.
func Unsure(first *Record, more bool) string {
	switch {
	case first.Headed:
	case more:
		return fmt.Sprintf(`text before the first header, %q; add a header (a line ">name") or remove it`, plaintext.Cut(first.Letters, 20))
	case first.Wrap.MayBeSeveral():
		return fmt.Sprintf(`%d lines but no header, so these could be several sequences; put a line ">name" before each sequence`, first.Wrap.Lines)
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

// Clean drops white space and converts letters to upper case. Only ASCII letters change,
// so that messages show other characters as they were written.
func Clean(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return -1
		}
		return Upper(c)
	}, text)
}

// Upper converts an ASCII letter to upper case and keeps any other character: Unicode
// would convert ſ to the letter S.
func Upper(c rune) rune {
	if c >= 'a' && c <= 'z' {
		c += 'A' - 'a'
	}
	return c
}

// leastWrap is the smallest width at which programs wrap the lines of a sequence.
const leastWrap = 40

// Wrap describes how a sequence is wrapped.
type Wrap struct {
	Lines       int
	first, last int // widths
	uneven      bool
}

// Add adds a line with this number of letters.
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

// MayBeSeveral reports whether the lines of a record without a header might be separate
// sequences, because they are not one sequence wrapped at a fixed width.
func (w *Wrap) MayBeSeveral() bool {
	return w.Lines > 1 && (w.uneven || w.first < leastWrap || w.last > w.first)
}
