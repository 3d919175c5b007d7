package structsum

import (
	"slices"
	"strings"
)

// chain is the residues of one kind in one chain, in the order of the file.
type chain struct {
	id       string
	kind     kind
	residues []*residue
}

// chains returns the polymers of a structure.
func (s *model) chains() (all []*chain) {
	for _, r := range s.residues {
		if r.kind != protein && r.kind != nucleic {
			continue
		}
		at := slices.IndexFunc(all, func(c *chain) bool { return c.id == r.chain && c.kind == r.kind })
		if at < 0 {
			at = len(all)
			all = append(all, &chain{id: r.chain, kind: r.kind})
		}
		all[at].residues = append(all[at].residues, r)
	}
	return all
}

func (c *chain) sequence() string {
	var text strings.Builder
	for _, r := range c.residues {
		letter := r.letter()
		if c.kind == nucleic {
			letter = r.name[len(r.name)-1:]
		}
		text.WriteString(letter)
	}
	return text.String()
}

// unusual lists the residues that are not standard amino acids.
func (c *chain) unusual() (names []string) {
	if c.kind != protein {
		return nil
	}
	for _, r := range c.residues {
		if !r.standard() {
			names = append(names, r.name+r.label())
		}
	}
	return names
}

// incomplete lists the residues of a protein that lack atoms of the backbone.
func (c *chain) incomplete() (names []string) {
	if c.kind != protein {
		return nil
	}
	for _, r := range c.residues {
		if r.atom("N") == nil || r.atom("CA") == nil || r.atom("C") == nil {
			names = append(names, r.name+r.label())
		}
	}
	return names
}

// gap is where a chain is broken.
type gap struct {
	before, after *residue
	missing       int // residues, by the numbers; 0 if these do not say
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
	if c.kind != protein {
		return nil
	}
	for k, after := range c.residues[1:] {
		before := c.residues[k]
		if length, broken := brokenBetween(before, after); broken {
			all = append(all, gap{before, after, max(0, after.number-before.number-1), length})
		}
	}
	return all
}

// brokenBetween measures the peptide bond, or the step from one alpha carbon to the next
// where atoms of the bond are missing. Without these, the numbers decide.
func brokenBetween(before, after *residue) (length float64, broken bool) {
	if c, n := before.atom("C"), after.atom("N"); c != nil && n != nil {
		length = distance(c, n)
		return length, length > longestBond
	}
	if a, b := before.atom("CA"), after.atom("CA"); a != nil && b != nil {
		length = distance(a, b)
		return length, length > longestStep
	}
	return 0, after.number-before.number > 1
}
