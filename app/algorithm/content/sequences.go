package content

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"molrun/app/base/fasta"
)

// Sequence letters in upper case. The letters after the twenty amino acids are rare or
// ambiguous residues; * is a stop.
const (
	aminoAcids  = "ACDEFGHIKLMNPQRSTVWYBJOUXZ*"
	nucleotides = "ACGTUNRYSWKMBDHV"
	gaps        = "-."
)

// maxNames limits how many record names are checked for uniqueness.
const maxNames = 1_000_000

// alphabet returns the letters allowed in sequences of a kind, and a noun for what a
// letter represents.
func alphabet(kind string) (letters, noun string) {
	switch kind {
	case NucleotideSequences:
		return nucleotides, "nucleotide"
	case Sequences: // for alignment programs, some of which treat a stop as a gap while others drop it
		return strings.TrimSuffix(aminoAcids, "*") + nucleotides, "amino acid or nucleotide"
	case Alignment:
		return aminoAcids + nucleotides + gaps, "residue or gap"
	case ProteinAlignment:
		return aminoAcids + gaps, "amino acid or gap"
	}
	return aminoAcids, "amino acid"
}

// checkSequences reads a FASTA file.
func checkSequences(text *lines, want Want) error {
	f := sequences{want: want, aligned: want.Kind == Alignment || want.Kind == ProteinAlignment}
	f.letters, f.noun = alphabet(want.Kind)
	for line, ok := text.next(); ok && len(f.mistakes) < maxMistakes; line, ok = text.next() {
		if want.AcceptsTextVariants {
			line = strings.TrimSpace(line)
		}
		shown := line
		if want.AcceptsTextVariants && fasta.KindOf(line) == fasta.Header {
			shown = strings.ToValidUTF8(line, "?")
		}
		if err := text.plain(shown); err != nil {
			return err
		}
		if err := f.readLine(shown, text.number); err != nil {
			return err
		}
	}
	if err := text.err(); err != nil {
		return err
	}
	f.endRecord()
	if f.records == 0 {
		return mistakef("has no records; a record begins with a line such as >P04637")
	}
	if doubt := fasta.Unsure(&f.first, f.records > 1); doubt != "" && len(f.mistakes) == 0 {
		return mistakef("has %s", doubt)
	}
	least := max(1, want.MinRecords)
	if f.aligned {
		least = max(2, want.MinRecords)
	}
	return errors.Join(append(f.mistakes, within(f.records, least, want.MaxRecords, "record"))...)
}

// sequences reads the records of a FASTA file.
type sequences struct {
	want          Want
	aligned       bool
	first         fasta.Record // letters mostly omitted
	letters, noun string
	records       int
	name          string         // of the current record
	columns       int            // residues and gaps of the current record
	seen          letterSet      // letters of the current record, without gaps
	residues      int            // of the current record
	inserted      int            // insertions of the current record: lower-case letters and dots, as in A3M files
	length        int            // length of the first record of an alignment
	matched       int            // columns of the first record that are not insertions
	names         map[string]int // record number by name
	kind          string         // "proteins" or "nucleotides", from the first conclusive record
	kindOf        int            // number of that record
	mistakes      []error
}

func (f *sequences) readLine(line string, number int) error {
	kind := fasta.KindOf(line)
	if kind == fasta.Nothing && line != "" && !f.want.AcceptsTextVariants { // a comment, which few programs support
		kind = fasta.Letters
	}
	switch {
	case kind == fasta.Header:
		f.first.Headed = f.first.Headed || f.records == 0
		f.endRecord()
		f.beginRecord(line[1:])
	case kind == fasta.Letters && f.records == 0 && !f.bare(line):
		return mistakef("is not a FASTA file: line %d comes before the first record, which must begin with a line such as >P04637", number)
	case kind == fasta.Letters:
		if f.records == 0 {
			f.beginRecord("")
		}
		f.sequence(line, number)
	}
	return nil
}

// bare reports whether a line can be a sequence without a header, which programs that
// accept text variants can read. Prose would contain other letters.
func (f *sequences) bare(line string) bool {
	letters := strings.TrimSuffix(fasta.Clean(line), "*")
	return f.want.AcceptsTextVariants && !f.aligned && letters != "" && strings.Trim(letters, "ACDEFGHIKLMNPQRSTVWYBUXZ") == ""
}

func (f *sequences) beginRecord(title string) {
	f.records++
	f.columns, f.inserted, f.residues, f.seen, f.name = 0, 0, 0, 0, ""
	if words := strings.Fields(title); len(words) > 0 {
		f.name = words[0]
	}
	if !f.want.UniqueNames {
		return
	}
	switch first := f.names[f.name]; {
	case f.name == "":
		f.fail("%s has no name: write one directly after the >", f.record())
	case first > 0:
		f.fail("%s has the same name as record %d: give each sequence a unique name", f.record(), first)
	case len(f.names) < maxNames:
		if f.names == nil {
			f.names = map[string]int{}
		}
		f.names[f.name] = f.records
	}
}

func (f *sequences) sequence(line string, number int) {
	if f.records == 1 && !f.first.Headed {
		letters := strings.TrimSuffix(fasta.Clean(line), "*")
		f.first.Letters += letters[:min(len(letters), 21-min(len(f.first.Letters), 21))]
		f.first.Wrap.Add(len(letters))
	}
	for i, r := range line {
		switch {
		case f.want.AcceptsTextVariants && unicode.IsSpace(r):
			continue
		case r == ' ' || r == '\t':
			f.fail("%s, line %d, letter %d: a space, which some programs read as a residue; remove it", f.record(), number, i+1)
		case strings.ContainsRune(f.letters, fasta.Upper(r)):
			f.addLetter(fasta.Upper(r), r)
			continue
		case strings.ContainsRune(gaps, r):
			f.fail("%s, line %d: %q is an alignment gap; remove gaps from the sequences", f.record(), number, string(r))
		case r == ':':
			f.fail("%s, line %d, letter %d: a colon separates the chains of a complex; use one record per chain", f.record(), number, i+1)
		case r == '*':
			f.fail("%s, line %d, letter %d: a stop (*) can't be aligned; remove it", f.record(), number, i+1)
		default:
			f.fail("%s, line %d, letter %d: %q is not a valid %s", f.record(), number, i+1, string(r), f.noun)
		}
		return // report one error per line
	}
}

// addLetter counts a residue, gap or stop.
func (f *sequences) addLetter(upper, r rune) {
	f.columns++
	if upper != r || r == '.' {
		f.inserted++
	}
	if !strings.ContainsRune(gaps, r) {
		f.residues++
		f.seen |= letter(upper)
	}
}

// endRecord checks and finishes the current record.
func (f *sequences) endRecord() {
	switch {
	case f.records == 0:
		return
	case f.columns == 0 && len(f.mistakes) == 0:
		f.fail("%s has no sequence", f.record())
	case f.residues == 0 && len(f.mistakes) == 0:
		f.fail("%s has only gaps", f.record())
	case f.seen&^f.unknown() == 0 && len(f.mistakes) == 0:
		f.fail("%s has only unknown residues, so there is nothing to compare", f.record())
	case f.aligned && f.records == 1:
		f.length, f.matched = f.columns, f.columns-f.inserted
	case f.aligned && f.columns != f.length && f.columns-f.inserted == f.matched:
		f.fail("%s has %d columns and the first record %d, but the same number without lower-case letters: this is an A3M or A2M file; convert it to aligned FASTA, for example with reformat.pl a3m fas", f.record(), f.columns, f.length)
	case f.aligned && f.columns != f.length:
		f.fail("%s has %d columns but the first record %d: all records of an alignment must have the same length", f.record(), f.columns, f.length)
	}
	if most := f.want.MaxResidues; most > 0 && f.columns > most {
		f.fail("%s has %d residues; the maximum is %d", f.record(), f.columns, most)
	}
	if least := f.want.MinResidues; f.residues > 0 && f.residues < least {
		f.fail("%s has %d residues; it needs at least %d", f.record(), f.residues, least)
	}
	found := f.want.found.Facts
	found["records"], found["residues"], found["longest"] = float64(f.records), found["residues"]+float64(f.residues), max(found["longest"], float64(f.residues))
	f.classify()
}

// unknown returns the letter that stands for any residue.
func (f *sequences) unknown() letterSet {
	if f.want.Kind == NucleotideSequences {
		return letter('N')
	}
	return letter('X')
}

// classify reports a record of the wrong kind. Nucleotide letters are also amino acid
// letters, so a program would return a result for them.
func (f *sequences) classify() {
	kind := f.seen.kind(f.residues)
	switch {
	case kind == "":
	case kind == nucleic && (f.want.Kind == ProteinSequences || f.want.Kind == ProteinAlignment):
		f.fail("%s looks like DNA or RNA: it has only nucleotide letters; provide protein sequences", f.record())
	case f.kind == "":
		f.kind, f.kindOf = kind, f.records
	case f.kind != kind && (f.want.Kind == Sequences || f.want.Kind == Alignment):
		f.fail("%s looks like %s, but record %d like %s: use only one kind of sequence", f.record(), kind, f.kindOf, f.kind)
	}
}

func (f *sequences) record() string {
	if f.name == "" {
		return fmt.Sprintf("record %d", f.records)
	}
	return fmt.Sprintf("record %d (%s)", f.records, f.name[:min(len(f.name), 60)])
}

func (f *sequences) fail(format string, args ...any) {
	f.mistakes = append(f.mistakes, mistakef(format, args...))
}

// letterSet is a set of the letters A to Z.
type letterSet uint32

func letter(r rune) letterSet {
	if r < 'A' || r > 'Z' {
		return 0
	}
	return 1 << (r - 'A')
}

func lettersOf(text string) (all letterSet) {
	for _, r := range text {
		all |= letter(r)
	}
	return all
}

// Kinds of records.
const (
	nucleic  = "nucleotides"
	proteins = "proteins"
)

// Minimum lengths at which a sequence of nucleotide letters only is certainly not a
// protein. The first is for sequences of bases and N, the second for those that also
// contain ambiguity codes. No protein of 100 residues without E, F, I, L, P and Q is
// known.
const (
	minNucleotides = 20
	minWithCodes   = 100
)

var (
	onlyProteins = lettersOf("EFILPQZ")
	nucleicOnes  = lettersOf("ACGTUN")
	nucleicCodes = nucleicOnes | lettersOf("RYSWKMBDHV")
	threeBases   = lettersOf("ACG")
	fourthBase   = lettersOf("TU")
)

// kind returns the kind of a sequence with these letters, or "" if uncertain.
func (s letterSet) kind(residues int) string {
	switch {
	case s&onlyProteins != 0:
		return proteins
	case s&threeBases != threeBases || s&fourthBase == 0:
		return ""
	case residues >= minNucleotides && s&^nucleicOnes == 0, residues >= minWithCodes && s&^nucleicCodes == 0:
		return nucleic
	}
	return ""
}
