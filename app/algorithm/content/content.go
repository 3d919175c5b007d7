// Package content checks whether uploaded files contain what an algorithm needs. It reads
// no more of a file than that requires. Without this check, a program given the wrong
// input could succeed and return a meaningless number.
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

// Kinds of content.
const (
	ProteinStructure    = "protein-structure"
	Structure           = "structure"
	ProteinSequences    = "protein-sequences"
	NucleotideSequences = "nucleotide-sequences"
	Sequences           = "sequences" // protein or nucleotide
	Alignment           = "alignment"
	ProteinAlignment    = "protein-alignment"
	SmallMolecules      = "small-molecules"
	Table               = "table"
)

// Kinds lists all kinds of content.
var Kinds = []string{ProteinStructure, Structure, ProteinSequences, NucleotideSequences, Sequences, Alignment, ProteinAlignment, SmallMolecules, Table}

// Limits on what is read.
const (
	maxBytes    = plaintext.MaxUnpacked // per file
	maxLine     = 64 << 20
	maxMistakes = 5 // reported per file
)

// Want describes the required content of a file. A limit of 0 means no limit.
type Want struct {
	Kind                     string
	MinResidues, MaxResidues int // of a structure or of each sequence
	MaxAtoms                 int
	MinRecords, MaxRecords   int      // number of sequences, molecules or rows
	Columns                  []string // columns that a table must have
	UniqueNames              bool     // sequence names must be unique
	Tolerant                 bool     // unreadable molecules are left to the program
	Packed                   bool     // the program reads gzip-compressed files
	AcceptsTextVariants      bool     // the program accepts the variants that plaintext.Unix handles; see web/docs/format.md

	// PDB lists the selections of atoms with which molrun can convert the structure to a
	// PDB file for the program. It is empty if the program uses no PDB file.
	PDB []structure.Selection

	found *Report // result, to be filled in
}

// Report describes the content of a file.
type Report struct {
	Facts    Facts
	Summary  string   // for structures, such as "1 chain, 129 residues"; otherwise ""
	Mistakes []string // errors in the file
}

// Mistake describes an error in a file. Messages put it after the file's name.
type Mistake string

func (m Mistake) Error() string { return string(m) }

func mistakef(format string, args ...any) error { return Mistake(fmt.Sprintf(format, args...)) }

// CheckFile reports the content of a file. The error is non-nil only if the file cannot
// be read.
func CheckFile(ctx context.Context, path string, want Want) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only
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
		text.any, text.bytes = want.AcceptsTextVariants, want.own()
	}
	if err == nil && text.packed && !want.Packed {
		err = mistakef("is compressed with gzip, which the program can't read: decompress it first")
	}
	if err == nil {
		err = checkText(text, want)
	}
	return err
}

// own reports whether molrun's structure reader reads the file on behalf of the program.
func (w Want) own() bool {
	return w.AcceptsTextVariants && (w.Kind == ProteinStructure || w.Kind == Structure)
}

func checkText(text *lines, want Want) error {
	switch want.Kind {
	case ProteinStructure, Structure:
		return checkStructure(text, want)
	case SmallMolecules:
		return checkMolecules(text, want)
	}
	return checkSequences(text, want)
}

// splitMistakes separates errors in the file from errors reading it.
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

// lines reads a text file line by line, decompressing gzip.
type lines struct {
	ctx     context.Context
	scanner *bufio.Scanner
	number  int // current line, from 1
	packed  bool
	text    *plaintext.Reader
	any     bool // the program accepts a byte order mark and lines that end with CR only
	bytes   bool // invalid UTF-8 is harmless, such as ° in a Windows encoding
}

func openText(ctx context.Context, f fs.File) (*lines, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, mistakef("is empty")
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

// limited is a reader that fails after a maximum number of bytes.
type limited struct {
	io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, mistakef("has more than %s, which is too much to check", unit.Bytes(maxBytes))
	}
	return n, err
}

// next returns the next line without its line ending. It returns false at the end.
func (l *lines) next() (string, bool) {
	if l.number%1000 == 0 && l.ctx.Err() != nil || !l.scanner.Scan() {
		return "", false
	}
	l.number++
	return strings.TrimRight(l.scanner.Text(), " \t"), true
}

// err returns the error that ended reading, or nil at the end of the file.
func (l *lines) err() error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	err := l.scanner.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return mistakef("has a line of more than %s", unit.Bytes(maxLine))
	case err != nil:
		return damaged(err)
	}
	return nil
}

// damaged converts decompression errors into errors in the file.
func damaged(err error) error {
	if broken, is := errors.AsType[plaintext.ErrDamaged](err); is {
		return Mistake(broken.Error())
	}
	if errors.Is(err, plaintext.ErrTooLarge) {
		return mistakef("has more than %s, which is too much to check", unit.Bytes(maxBytes))
	}
	return err
}

const returns = "has lines that end with a carriage return (CR) only, which programs do not recognize: save it with Unix line endings (LF)"

// plain returns an error if a line is not plain text, or if the program would misread it.
func (l *lines) plain(line string) error {
	switch {
	case strings.IndexByte(line, 0) >= 0 || !utf8.ValidString(line) && !l.bytes:
		return mistakef("is not plain text: line %d has invalid characters", l.number)
	case l.text.Marked && !l.any:
		return mistakef("begins with a byte order mark, which programs treat as text: save it as plain text (UTF-8 without BOM)")
	case l.text.Returns && !l.any:
		return mistakef(returns)
	}
	return nil
}

// within checks a count against its limits. noun is singular.
func within(n, least, most int, noun string) error {
	switch {
	case n < least:
		return mistakef("has %s; it needs at least %d", unit.Count(n, noun), least)
	case most > 0 && n > most:
		return mistakef("has %s; the maximum is %d", unit.Count(n, noun), most)
	}
	return nil
}

// Keys returns the keys of an algorithm file that can describe a kind of content.
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
