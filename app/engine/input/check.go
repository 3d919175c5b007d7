package input

import (
	"fmt"
	"strings"
	"unicode"

	"molrun/app/base/unit"
	"molrun/app/engine/md"
)

// Limits on the length of a sequence.
const (
	minResidues = 5
	maxResidues = 2000
)

const (
	// shownPositions is the maximum number of positions of one invalid character listed
	// in a message.
	shownPositions = 5

	// shownCharacters is the maximum number of different invalid characters of a sequence
	// that get a message.
	shownCharacters = 5
)

// checkSequence returns the errors in a sequence and how to correct them, one sentence
// per error. Each sentence refers to the sequence by name.
func checkSequence(name, letters string) []string {
	if looksLikeRNA(letters) {
		return []string{fmt.Sprintf("sequence %q has only A, C, G and U, so it looks like RNA; give the protein that it codes for", name)}
	}
	if translated := fromCodes(letters); translated != "" {
		return []string{fmt.Sprintf("sequence %q is written in three-letter codes; write one letter for each residue: %s",
			name, shorten(translated, 60))}
	}
	wrong, residues := wrongCharacters(letters)
	var faults []string
	for _, w := range wrong[:min(len(wrong), shownCharacters)] {
		faults = append(faults, fmt.Sprintf("sequence %q, %s: %s; %s",
			name, formatPositions(w.positions), w.title(), hint(w.character)))
	}
	if more := len(wrong) - shownCharacters; more > 0 {
		faults = append(faults, fmt.Sprintf("sequence %q has %s that are not amino acids",
			name, unit.Count(more, "other character")))
	}
	if fault := checkLength(name, residues); fault != "" {
		faults = append(faults, fault)
	}
	return faults
}

func checkLength(name string, n int) string {
	switch {
	case n == 0:
		return fmt.Sprintf("sequence %q is empty; give it %d to %d residues, or remove it", name, minResidues, maxResidues)
	case n < minResidues:
		return fmt.Sprintf("sequence %q has %s; it needs at least %d", name, unit.Count(n, "residue"), minResidues)
	case n > maxResidues:
		return fmt.Sprintf("sequence %q has %d residues; at most %d can be simulated: give its disordered regions as sequences of their own",
			name, n, maxResidues)
	}
	return ""
}

// wrongCharacter is a character that is not an amino acid, with its 1-based positions.
// All digits count as one character.
type wrongCharacter struct {
	character rune
	positions []int
}

func (w wrongCharacter) title() string {
	switch c := w.character; {
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

// digits represents all digits.
const digits = '0'

// wrongCharacters returns the characters that are not amino acids, in order of first
// occurrence, and the number of residues, valid or not.
func wrongCharacters(letters string) (found []wrongCharacter, residues int) {
	at := map[rune]int{}
	position := 0
	for _, c := range letters {
		position++
		if unicode.IsLetter(c) {
			residues++
		}
		if c <= unicode.MaxASCII && strings.IndexByte(md.Letters, byte(c)) >= 0 {
			continue
		}
		if unicode.IsDigit(c) {
			c = digits
		}
		k, seen := at[c]
		if !seen {
			k = len(found)
			at[c] = k
			found = append(found, wrongCharacter{character: c})
		}
		found[k].positions = append(found[k].positions, position)
	}
	return found, residues
}

// formatPositions formats positions for a message.
func formatPositions(positions []int) string {
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

// looksLikeRNA reports whether letters must be RNA. DNA consists only of valid amino acid
// letters, so it gets a warning instead.
func looksLikeRNA(letters string) bool {
	return len(letters) >= minResidues && strings.Contains(letters, "U") && strings.Trim(letters, "ACGU") == ""
}

// shorten truncates a long text to most bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// hints are corrections for invalid characters that are common in sequences.
var hints = map[rune]string{
	'B':      "B stands for D or N: choose one",
	'J':      "J stands for I or L: choose one",
	'O':      "O is pyrrolysine, which the model does not have: use K, the nearest",
	'U':      "U is selenocysteine, which the model does not have: use C, the nearest",
	'X':      "X stands for an unknown residue: fill it in or cut it out",
	'Z':      "Z stands for E or Q: choose one",
	digits:   "remove numbers from the sequence",
	'\ufffd': "the text is not valid UTF-8 there: retype it, or save the file as UTF-8",
	'*':      "it marks a stop: check the reading frame, or cut the sequence there",
	':':      "it separates the chains of a complex: give each a record of its own",
	'>':      "begin each FASTA header on a line of its own",
}

// gaps are the characters used for gaps in alignments.
const gaps = "-.~_–—"

// hint returns how to correct an invalid character.
func hint(c rune) string {
	switch text, ok := hints[c]; {
	case ok:
		return text
	case strings.ContainsRune(gaps, c):
		return "remove the gaps of the alignment"
	case !unicode.IsPrint(c):
		return "retype the sequence there, or copy it as plain text"
	case c > unicode.MaxASCII && unicode.IsLetter(c):
		return "retype it as one of the letters " + md.Letters
	}
	return "use the letters " + md.Letters
}
