package content

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"molrun/app/base/fasta"
)

// Letters of sequences, in upper case. Those behind the twenty amino acids are the
// ambiguous and rare ones; * is a stop.
const (
	aminoAcids  = "ACDEFGHIKLMNPQRSTVWYBJOUXZ*"
	nucleotides = "ACGTUNRYSWKMBDHV"
	gaps        = "-."
)

// maxNames is how many names of records are compared with one another.
const maxNames = 1_000_000

// alphabet says which letters sequences of a kind have, and what one of them is.
func alphabet(kind string) (letters, noun string) {
	switch kind {
	case NucleotideSequences:
		return nucleotides, "nucleotide"
	case Sequences: // to be aligned: some programs take a stop for a gap, others drop it
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
		if want.AnyText {
			line = strings.TrimSpace(line)
		}
		shown := line
		if want.AnyText && fasta.KindOf(line) == fasta.Header {
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
		return wrong("has no record: each begins with a line such as >P04637")
	}
	if doubt := fasta.Unsure(&f.first, f.records > 1); doubt != "" && len(f.mistakes) == 0 {
		return wrong("has %s", doubt)
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
	first         fasta.Record // without most of its letters
	letters, noun string
	records       int
	name          string         // of the record
	columns       int            // of the record: residues and gaps
	seen          letterSet      // in the record, without gaps
	residues      int            // of the record
	inserted      int            // of the record: lower-case letters and dots, which A3M files have for insertions
	length        int            // of the first record of an alignment
	matched       int            // columns of it that are no insertions
	names         map[string]int // which record has the name
	kind          string         // "proteins" or "nucleotides", as the first record that shows it
	kindOf        int            // the number of that record
	mistakes      []error
}

func (f *sequences) readLine(line string, number int) error {
	kind := fasta.KindOf(line)
	if kind == fasta.Nothing && line != "" && !f.want.AnyText { // a comment, which few programs know
		kind = fasta.Letters
	}
	switch {
	case kind == fasta.Header:
		f.first.Headed = f.first.Headed || f.records == 0
		f.endRecord()
		f.beginRecord(line[1:])
	case kind == fasta.Letters && f.records == 0 && !f.bare(line):
		return wrong("is no FASTA file: line %d stands before the first record, which begins with a line such as >P04637", number)
	case kind == fasta.Letters:
		if f.records == 0 {
			f.beginRecord("")
		}
		f.sequence(line, number)
	}
	return nil
}

// bare reports whether a line may be that of a sequence without a header, as programs that read
// any text take it. Prose has other letters.
func (f *sequences) bare(line string) bool {
	letters := strings.TrimSuffix(fasta.Clean(line), "*")
	return f.want.AnyText && !f.aligned && letters != "" && strings.Trim(letters, "ACDEFGHIKLMNPQRSTVWYBUXZ") == ""
}

// beginRecord begins a record.
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
		f.fail("%s has no name: write one directly behind the >", f.record())
	case first > 0:
		f.fail("%s has the name of record %d: give each sequence a name of its own", f.record(), first)
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
		case f.want.AnyText && unicode.IsSpace(r):
			continue
		case r == ' ' || r == '\t':
			f.fail("%s, line %d, letter %d: a blank, which some programs take for a residue; remove it", f.record(), number, i+1)
		case strings.ContainsRune(f.letters, fasta.Upper(r)):
			f.addLetter(fasta.Upper(r), r)
			continue
		case strings.ContainsRune(gaps, r):
			f.fail("%s, line %d: %q is a gap of an alignment; give the sequences without gaps", f.record(), number, string(r))
		case r == ':':
			f.fail("%s, line %d, letter %d: a colon separates the chains of a complex; give each chain a record of its own", f.record(), number, i+1)
		case r == '*':
			f.fail("%s, line %d, letter %d: a stop (*) can't be aligned; remove it", f.record(), number, i+1)
		default:
			f.fail("%s, line %d, letter %d: %q is no %s", f.record(), number, i+1, string(r), f.noun)
		}
		return // one error of a line is enough
	}
}

// addLetter counts a letter, a gap or a stop.
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

// endRecord ends the record.
func (f *sequences) endRecord() {
	switch {
	case f.records == 0:
		return
	case f.columns == 0 && len(f.mistakes) == 0:
		f.fail("%s has no sequence", f.record())
	case f.residues == 0 && len(f.mistakes) == 0:
		f.fail("%s has only gaps", f.record())
	case f.seen&^f.unknown() == 0 && len(f.mistakes) == 0:
		f.fail("%s has unknown residues alone, so there is nothing to compare", f.record())
	case f.aligned && f.records == 1:
		f.length, f.matched = f.columns, f.columns-f.inserted
	case f.aligned && f.columns != f.length && f.columns-f.inserted == f.matched:
		f.fail("%s has %d columns and the first record %d, but as many without lower-case letters: it is an A3M or A2M file; convert it to aligned FASTA, as with reformat.pl a3m fas", f.record(), f.columns, f.length)
	case f.aligned && f.columns != f.length:
		f.fail("%s has %d columns and the first record %d: all have the same length in an alignment", f.record(), f.columns, f.length)
	}
	if most := f.want.MaxResidues; most > 0 && f.columns > most {
		f.fail("%s has %d residues; at most %d can be used", f.record(), f.columns, most)
	}
	if least := f.want.MinResidues; f.residues > 0 && f.residues < least {
		f.fail("%s has %d residues; it needs at least %d", f.record(), f.residues, least)
	}
	found := f.want.found.Facts
	found["records"], found["residues"], found["longest"] = float64(f.records), found["residues"]+float64(f.residues), max(found["longest"], float64(f.residues))
	f.classify()
}

// unknown are the letters that stand for any residue.
func (f *sequences) unknown() letterSet {
	if f.want.Kind == NucleotideSequences {
		return letter('N')
	}
	return letter('X')
}

// classify notes a record of another kind than is wanted. Nucleotides are amino acids by
// their letters, and a program would give a figure for them.
func (f *sequences) classify() {
	kind := f.seen.kind(f.residues)
	switch {
	case kind == "":
	case kind == nucleic && (f.want.Kind == ProteinSequences || f.want.Kind == ProteinAlignment):
		f.fail("%s looks like DNA or RNA: its letters are those of nucleotides alone; give proteins", f.record())
	case f.kind == "":
		f.kind, f.kindOf = kind, f.records
	case f.kind != kind && (f.want.Kind == Sequences || f.want.Kind == Alignment):
		f.fail("%s looks like %s and record %d like %s: give sequences of one kind", f.record(), kind, f.kindOf, f.kind)
	}
}

func (f *sequences) record() string {
	if f.name == "" {
		return fmt.Sprintf("record %d", f.records)
	}
	return fmt.Sprintf("record %d (%s)", f.records, f.name[:min(len(f.name), 60)])
}

func (f *sequences) fail(format string, args ...any) {
	f.mistakes = append(f.mistakes, wrong(format, args...))
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

// What records are.
const (
	nucleic  = "nucleotides"
	proteins = "proteins"
)

// A sequence of this length, whose letters are all nucleotides, is no protein: of bases and N, or with the codes
// of bases that are not sure. Proteins of 100 residues without E, F, I, L, P and Q are not known.
const (
	telling      = 20
	tellingCodes = 100
)

var (
	onlyProteins = lettersOf("EFILPQZ")
	nucleicOnes  = lettersOf("ACGTUN")
	nucleicCodes = nucleicOnes | lettersOf("RYSWKMBDHV")
	threeBases   = lettersOf("ACG")
	fourthBase   = lettersOf("TU")
)

// kind returns what a sequence of these letters is, "" where that is not sure.
func (s letterSet) kind(residues int) string {
	switch {
	case s&onlyProteins != 0:
		return proteins
	case s&threeBases != threeBases || s&fourthBase == 0:
		return ""
	case residues >= telling && s&^nucleicOnes == 0, residues >= tellingCodes && s&^nucleicCodes == 0:
		return nucleic
	}
	return ""
}
