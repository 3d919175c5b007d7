package structsum

import (
	"strings"

	"molrun/app/base/structure"
)

// chain is a polymer, without residues that have only hydrogens.
type chain struct {
	*structure.Chain
	residues []*residue
}

// count numbers the residues by position in the chain.
func (c *chain) count() {
	for k, after := range c.residues[1:] {
		after.index = c.residues[k].index + 1
		if _, broken := brokenBetween(c.residues[k], after); broken {
			after.index += missingBetween(c.residues[k], after)
		}
	}
}

func (c *chain) sequence() string {
	var text strings.Builder
	for _, r := range c.residues {
		letter := r.Letter()
		if c.Kind == structure.Nucleic {
			letter = r.Name[len(r.Name)-1:]
		}
		text.WriteString(letter)
	}
	return text.String()
}

// unusual returns the residues that are not standard amino acids.
func (c *chain) unusual() (names []string) {
	if c.Kind != structure.Protein {
		return nil
	}
	for _, r := range c.residues {
		if !r.Standard() {
			names = append(names, r.Name+r.Label())
		}
	}
	return names
}

// incomplete returns the residues of a protein with missing backbone atoms.
func (c *chain) incomplete() (names []string) {
	if c.Kind != structure.Protein {
		return nil
	}
	for _, r := range c.residues {
		if !r.Cap() && (r.atom("N") == nil || r.atom("CA") == nil || r.atom("C") == nil) {
			names = append(names, r.Name+r.Label())
		}
	}
	return names
}

// gap is a chain break.
type gap struct {
	before, after *residue
	missing       int // from residue numbers; 0 if unknown
	distance      float64
}

// Maximum distances in an unbroken chain, in Å: of a peptide bond (1.33) and between
// adjacent alpha carbons (3.8), with a tolerance for poor structures.
const (
	longestBond = 2.0
	longestStep = 4.5
)

// gaps returns the breaks of a protein chain.
func (c *chain) gaps() (all []gap) {
	if c.Kind != structure.Protein {
		return nil
	}
	for k, after := range c.residues[1:] {
		before := c.residues[k]
		if length, broken := brokenBetween(before, after); broken {
			all = append(all, gap{before, after, missingBetween(before, after), length})
		}
	}
	return all
}

// brokenBetween measures the peptide bond or, if its atoms are missing, the distance
// between the alpha carbons. If these are missing too, it compares the residue numbers.
func brokenBetween(before, after *residue) (length float64, broken bool) {
	if c, n := before.atom("C"), after.atom("N"); c != nil && n != nil {
		length = structure.Distance(c, n)
		return length, length > longestBond
	}
	if a, b := before.atom("CA"), after.atom("CA"); a != nil && b != nil {
		length = structure.Distance(a, b)
		return length, length > longestStep
	}
	return 0, missingBetween(before, after) > 0
}

// missingBetween returns the number of residues missing between two residues, from their
// sequence numbers or, failing that, their numbers in the file, which do not count
// residues with insertion codes.
func missingBetween(before, after *residue) int {
	if before.Sequence > 0 && after.Sequence > 0 {
		return max(0, after.Sequence-before.Sequence-1)
	}
	return max(0, after.Number-before.Number-1)
}
