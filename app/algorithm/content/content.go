// Package content reads what users upload as far as it takes to say whether it is what
// an algorithm wants: a program that is given something else may end well with a number
// that means nothing.
package content

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"molrun/app/base/plaintext"
	"molrun/app/base/structure"
	"molrun/app/base/unit"
)

// The kinds of content.
const (
	ProteinStructure    = "protein-structure"
	Structure           = "structure"
	ProteinSequences    = "protein-sequences"
	NucleotideSequences = "nucleotide-sequences"
	Sequences           = "sequences" // of either kind
	Alignment           = "alignment"
	ProteinAlignment    = "protein-alignment"
	SmallMolecules      = "small-molecules"
	Table               = "table"
)

// Kinds lists the kinds of content.
var Kinds = []string{ProteinStructure, Structure, ProteinSequences, NucleotideSequences, Sequences, Alignment, ProteinAlignment, SmallMolecules, Table}

// Bounds of what is read.
const (
	maxBytes    = plaintext.MaxUnpacked // of a file
	maxLine     = 64 << 20
	maxMistakes = 5 // errors of one file
)

// Want is what a file has to be. Bounds of 0 are none.
type Want struct {
	Kind                     string
	MinResidues, MaxResidues int // of a structure, or of each sequence
	MaxAtoms                 int
	MinRecords, MaxRecords   int      // sequences, molecules or rows
	Columns                  []string // that a table has
	UniqueNames              bool     // of sequences
	Tolerant                 bool     // molecules that can't be read are left to the program
	Packed                   bool     // whether the program reads files packed by gzip
	AnyText                  bool     // whether the program reads what people have: see plaintext.Unix, and web/docs/format.md

	// PDB are ways in which the program may be given the structure as a PDB file; none: it
	// isn't.
	PDB []structure.Selection

	found *Report // to be filled
}

// Report is what a file holds.
type Report struct {
	Facts    Facts
	Summary  string   // of a structure, such as "1 chain, 129 residues"; else ""
	Mistakes []string // of the file
}

// Mistake says what is wrong with a file, to be put behind its name.
type Mistake string

func (m Mistake) Error() string { return string(m) }

func wrong(format string, args ...any) error { return Mistake(fmt.Sprintf(format, args...)) }

// CheckFile returns what a file holds. The error says that it can't be read.
func CheckFile(ctx context.Context, path string, want Want) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	want.found = &Report{Facts: Facts{}}
	want.found.Mistakes, err = splitMistakes(checkFile(ctx, f, want))
	return want.found, err
}

func checkFile(ctx context.Context, f *os.File, want Want) error {
	if want.Kind == Table {
		return checkTable(f, want)
	}
	text, err := openText(ctx, f)
	if err == nil {
		text.any, text.bytes = want.AnyText, want.own()
	}
	if err == nil && text.packed && !want.Packed {
		err = wrong("is packed by gzip, which the program can't read: unpack it first")
	}
	if err == nil {
		err = checkText(text, want)
	}
	return err
}

// own reports whether molrun's reader of structures reads the file for the program.
func (w Want) own() bool { return w.AnyText && (w.Kind == ProteinStructure || w.Kind == Structure) }

func checkText(text *lines, want Want) error {
	switch want.Kind {
	case ProteinStructure, Structure:
		return checkStructure(text, want)
	case SmallMolecules:
		return checkMolecules(text, want)
	}
	return checkSequences(text, want)
}

// splitMistakes separates errors in the file from errors of reading it.
func splitMistakes(err error) ([]string, error) {
	if err == nil {
		return nil, nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // as errors.Join makes it
		var all []string
		for _, one := range many.Unwrap() {
			mistakes, err := splitMistakes(one)
			if err != nil {
				return nil, err
			}
			all = append(all, mistakes...)
		}
		return all[:min(len(all), maxMistakes)], nil
	}
	if m, ok := errors.AsType[Mistake](err); ok {
		return []string{string(m)}, nil
	}
	return nil, err
}

// lines reads a text by lines, unpacked if it is packed by gzip.
type lines struct {
	ctx     context.Context
	scanner *bufio.Scanner
	number  int // of the line, from 1
	packed  bool
	text    *plaintext.Reader
	any     bool // the program reads a byte order mark, and lines that end with CR alone
	bytes   bool // other letters than those of UTF-8 do no harm, such as ° of Windows
}

func openText(ctx context.Context, f fs.File) (*lines, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, wrong("is empty")
	}
	l := &lines{ctx: ctx}
	text, packed, err := plaintext.Unpack(f)
	if err != nil {
		return nil, damaged(err)
	}
	l.packed, l.text = packed, plaintext.NewReader(&limited{text, maxBytes})
	l.scanner = bufio.NewScanner(l.text)
	l.scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	return l, nil
}

// limited is a reader that refuses more than a number of bytes.
type limited struct {
	io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, wrong("has more than %s, which is too much to check", unit.Bytes(maxBytes))
	}
	return n, err
}

// next returns the next line without what ends it; false at the end.
func (l *lines) next() (string, bool) {
	if l.number%1000 == 0 && l.ctx.Err() != nil || !l.scanner.Scan() {
		return "", false
	}
	l.number++
	return strings.TrimRight(l.scanner.Text(), " \t"), true
}

// err returns why there are no more lines, nil at the end.
func (l *lines) err() error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	err := l.scanner.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return wrong("has a line of more than %s", unit.Bytes(maxLine))
	case err != nil:
		return damaged(err)
	}
	return nil
}

// damaged returns what is wrong with a packed file that can be read, but not unpacked.
func damaged(err error) error {
	if broken, is := errors.AsType[plaintext.ErrDamaged](err); is {
		return Mistake(broken.Error())
	}
	if errors.Is(err, plaintext.ErrTooLarge) {
		return wrong("has more than %s, which is too much to check", unit.Bytes(maxBytes))
	}
	return err
}

const returns = "has lines that end with a carriage return (CR) alone, which programs don't take for an end: save it with the line ends of Unix (LF)"

// plain notes a line that is no text, and text that the program would take for another.
func (l *lines) plain(line string) error {
	switch {
	case strings.IndexByte(line, 0) >= 0 || !utf8.ValidString(line) && !l.bytes:
		return wrong("is no plain text: line %d has other bytes", l.number)
	case l.text.Marked && !l.any:
		return wrong("begins with a byte order mark, which programs take for a letter: save it as plain text (UTF-8 without BOM)")
	case l.text.Returns && !l.any:
		return wrong(returns)
	}
	return nil
}

// within checks a number against its bounds. The noun is singular.
func within(n, least, most int, noun string) error {
	switch {
	case n < least:
		return wrong("has %s; it needs at least %d", unit.Count(n, noun), least)
	case most > 0 && n > most:
		return wrong("has %s; at most %d can be used", unit.Count(n, noun), most)
	}
	return nil
}

// Keys are what can be said of a kind of content, as algorithm files name it.
func Keys(kind string) []string {
	switch kind {
	case ProteinStructure:
		return []string{"min_residues", "max_residues", "max_atoms", "any_text", "pdb"}
	case Structure:
		return []string{"max_atoms", "any_text", "pdb"}
	case SmallMolecules:
		return []string{"min_records", "max_records", "max_atoms", "any_text", "tolerant"}
	case Table:
		return []string{"min_records", "max_records", "columns"}
	}
	if slices.Contains(Kinds, kind) {
		return []string{"min_residues", "max_residues", "min_records", "max_records", "unique_names", "any_text"}
	}
	return nil
}
