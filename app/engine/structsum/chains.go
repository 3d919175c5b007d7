package structsum

import (
	"strings"

	"molrun/app/base/structure"
)

// chain is a polymer, without residues that have nothing but hydrogens.
type chain struct {
	*structure.Chain
	residues []*residue
}

// count sets the positions of residues in the chain.
func (c *chain) count() {
	for k, after := range c.residues[1:] {
		after.place = c.residues[k].place + 1
		if _, broken := brokenBetween(c.residues[k], after); broken {
			after.place += missingBetween(c.residues[k], after)
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

// unusual lists the residues that are not standard amino acids.
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

// incomplete lists the residues of a protein with missing atoms of the backbone.
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

// gap is where a chain is broken.
type gap struct {
	before, after *residue
	missing       int // residues, by their numbers; 0 if these do not say
	distance      float64
}

// Longest distances in an unbroken chain, Å: of a peptide bond (1.33) and between the alpha
// carbons beside it (3.8), with what poor structures deviate.
const (
	longestBond = 2.0
	longestStep = 4.5
)

// gaps returns where a protein chain is broken.
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

// brokenBetween measures the peptide bond, or the step from one alpha carbon to the next
// where atoms of the bond are missing. Without these, the numbers decide.
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

// missingBetween returns how many residues are missing between two by their numbers in the
// sequence, or else in the file. Those with insertion codes are not to be counted there.
func missingBetween(before, after *residue) int {
	if before.Sequence > 0 && after.Sequence > 0 {
		return max(0, after.Sequence-before.Sequence-1)
	}
	return max(0, after.Number-before.Number-1)
}
