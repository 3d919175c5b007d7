package cgidp

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	// shownPositions is how many places of one wrong character are told.
	shownPositions = 5

	// shownCharacters is how many different wrong characters of a sequence get a
	// fault each.
	shownCharacters = 5

	// leastSpelled is how many three-letter codes in a row are no accident: all of
	// their letters stand for amino acids, too.
	leastSpelled = 4
)

// checkLetters returns the faults of one sequence.
func checkLetters(s source, name string) []Fault {
	if looksLikeRNA(s.letters) {
		return []Fault{faultf(s.loc, faultSequence, "sequence %q has only A, C, G and U, so it looks like RNA; give the protein that it codes for", name)}
	}
	if short := spelledOut(s.letters); short != "" {
		return []Fault{faultf(s.loc, faultSequence, "sequence %q is written in three-letter codes; write one letter for each residue: %s",
			name, shortened(short, 60))}
	}
	wrong, residues := strangers(s.letters)
	var faults []Fault
	for _, w := range wrong[:min(len(wrong), shownCharacters)] {
		faults = append(faults, faultf(s.loc, faultSequence, "sequence %q, %s: %s; %s",
			name, places(w.positions), w.title(), hint(w.character)))
	}
	if more := len(wrong) - shownCharacters; more > 0 {
		faults = append(faults, faultf(s.loc, faultSequence, "sequence %q has %s that are not amino acids",
			name, plural(more, "other character")))
	}
	return append(faults, checkLength(s, name, residues)...)
}

// stranger is a character that is not an amino acid, with its places from 1.
// All digits are taken as one.
type stranger struct {
	character rune
	positions []int
}

func (s stranger) title() string {
	switch c := s.character; {
	case c == digits:
		return "digits are not amino acids"
	case !unicode.IsPrint(c):
		return fmt.Sprintf("there is an invisible character (%U)", c)
	case c > unicode.MaxASCII:
		return fmt.Sprintf("%q (%U) is not an amino acid", c, c)
	default:
		return fmt.Sprintf("%q is not an amino acid", c)
	}
}

// digits stands for all of them.
const digits = '0'

// strangers finds the characters that are not amino acids, in the order of
// their first places, and counts the residues, known or not.
func strangers(letters string) (found []stranger, residues int) {
	at := map[rune]int{}
	position := 0
	for _, c := range letters {
		position++
		if unicode.IsLetter(c) {
			residues++
		}
		if c <= unicode.MaxASCII && strings.IndexByte(residueLetters, byte(c)) >= 0 {
			continue
		}
		if unicode.IsDigit(c) {
			c = digits
		}
		k, seen := at[c]
		if !seen {
			k = len(found)
			at[c] = k
			found = append(found, stranger{character: c})
		}
		found[k].positions = append(found[k].positions, position)
	}
	return found, residues
}

// places writes positions as people do.
func places(positions []int) string {
	if len(positions) == 1 {
		return fmt.Sprintf("position %d", positions[0])
	}
	var words []string
	for _, p := range positions[:min(len(positions), shownPositions)] {
		words = append(words, fmt.Sprint(p))
	}
	if more := len(positions) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	last := len(words) - 1
	return "positions " + strings.Join(words[:last], ", ") + " and " + words[last]
}

// looksLikeRNA tells a sequence that cannot be a protein. DNA, which has the
// letters of amino acids alone, gets a warning instead.
func looksLikeRNA(letters string) bool {
	return len(letters) >= minResidues && strings.Contains(letters, "U") && strings.Trim(letters, "ACGU") == ""
}

// spelledOut translates a sequence of three-letter codes, as in Asp-Ser-His; ""
// if it is none.
func spelledOut(letters string) string {
	letters = strings.ReplaceAll(letters, "-", "")
	if len(letters)%3 != 0 || len(letters) < 3*leastSpelled {
		return ""
	}
	var short strings.Builder
	for k := 0; k < len(letters); k += 3 {
		t := residueCalled(letters[k : k+3])
		if t < 0 {
			return ""
		}
		short.WriteByte(residueLetters[t])
	}
	return short.String()
}

// residueCalled is the type with a three-letter name, -1 if there is none.
func residueCalled(three string) int {
	for t := range residues {
		if strings.EqualFold(residues[t].three, three) {
			return t
		}
	}
	return -1
}

// shortened keeps the beginning of a long text.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// hints say what to do about characters that are often met in sequences.
var hints = map[rune]string{
	'B':      "B stands for D or N: choose one",
	'J':      "J stands for I or L: choose one",
	'O':      "O is pyrrolysine, which the model does not have: use K, the nearest",
	'U':      "U is selenocysteine, which the model does not have: use C, the nearest",
	'X':      "X stands for an unknown residue: fill it in or cut it out",
	'Z':      "Z stands for E or Q: choose one",
	digits:   "remove numbers from the sequence",
	'\ufffd': "the text is not UTF-8 there: type it anew, or save the file as UTF-8",
	'*':      "it marks a stop: check the reading frame, or cut the sequence there",
	'>':      "begin each FASTA header on a line of its own",
}

// gaps are how alignments write residues that are not there.
const gaps = "-.~_–—"

// hint says what to do about one character that is not an amino acid.
func hint(c rune) string {
	switch text, ok := hints[c]; {
	case ok:
		return text
	case strings.ContainsRune(gaps, c):
		return "remove the gaps of the alignment"
	case !unicode.IsPrint(c):
		return "type the sequence anew there, or copy it as plain text"
	case c > unicode.MaxASCII && unicode.IsLetter(c):
		return "type it anew as one of the plain letters " + residueLetters
	}
	return "use the letters " + residueLetters
}
