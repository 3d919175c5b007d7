package structure

import (
	"fmt"
	"strconv"
	"strings"

	"molrun/app/base/unit"
)

// mostNamed limits how many ligands or chains a summary names.
const mostNamed = 5

// Summary describes the model, such as "2 chains, 129 + 129 residues, 1 ligand (HEM), 84
// waters".
func (m *Model) Summary() string {
	var parts []string
	say := func(n int, noun, more string) {
		if n > 0 {
			parts = append(parts, unit.Count(n, noun)+more)
		}
	}
	say(len(m.Chains), "chain", "")
	if text := m.lengths(); text != "" {
		parts = append(parts, text)
	}
	ligands, waters, several, modified := m.rest()
	say(len(ligands), "ligand", names(ligands))
	say(waters, "water", "")
	say(len(modified), "modified residue", names(modified))
	if several > 0 {
		parts = append(parts, unit.Count(several, "residue")+" with alternate locations, of which the one with the highest occupancy is used")
	}
	if m.Models > 1 {
		parts = append(parts, "the first of several models")
	}
	if len(parts) == 0 {
		return "no atoms"
	}
	return strings.Join(parts, ", ")
}

// lengths returns the number of residues in each chain as text.
func (m *Model) lengths() string {
	var all []string
	sum := 0
	for _, c := range m.Chains {
		sum += len(c.Residues)
		all = append(all, strconv.Itoa(len(c.Residues)))
	}
	if len(all) > mostNamed {
		return unit.Count(sum, "residue")
	}
	text := strings.Join(all, " + ")
	switch {
	case text == "":
		return ""
	case sum == 1:
		return text + " residue"
	}
	return text + " residues"
}

// rest returns the names of ligands and modified residues, and counts waters and residues
// with alternate locations.
func (m *Model) rest() (ligands []string, waters, several int, modified []string) {
	for _, r := range m.Residues {
		switch {
		case r.Kind == Ligand:
			ligands = append(ligands, r.Name)
		case r.Kind == Water:
			waters++
		case r.Kind == Protein && !r.Standard() && !r.Cap():
			modified = append(modified, r.Name)
		}
		if r.Alternates() {
			several++
		}
	}
	return ligands, waters, several, modified
}

// names lists each distinct name once.
func names(all []string) string {
	seen := map[string]bool{}
	var some []string
	for _, name := range all {
		if !seen[name] {
			seen[name] = true
			some = append(some, name)
		}
	}
	if more := len(some) - mostNamed; more > 0 {
		some = append(some[:mostNamed], fmt.Sprintf("%d more", more))
	}
	if len(some) == 0 {
		return ""
	}
	return " (" + strings.Join(some, ", ") + ")"
}
