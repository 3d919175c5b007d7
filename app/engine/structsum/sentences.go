package structsum

import (
	"fmt"
	"io"
	"strings"

	"molrun/app/base/structure"
	"molrun/app/base/unit"
	"molrun/app/engine/store"
)

// mostListed is the maximum number of items of one kind listed in a sentence.
const mostListed = 10

// sentences returns the report as text: first the contents, then issues to consider
// before running calculations with the structure. It also logs each line, with the issues
// marked as warnings.
func (r *report) sentences(log io.Writer) string {
	var lines []string
	add := func(format string, args []any) string {
		line := fmt.Sprintf(format, args...)
		lines = append(lines, line)
		return line
	}
	say := func(format string, args ...any) { fmt.Fprintln(log, add(format, args)) }
	warn := func(format string, args ...any) { store.Warn(log, add(format, args)) }
	s := r.model
	if s.Models > 1 {
		say("%d models; this summary covers the first.", s.Models)
	}
	for _, c := range s.chains {
		say("Chain %s: %s with %s, %s to %s.", named(c.ID()), c.Kind, unit.Count(len(c.residues), "residue"), c.residues[0].Label(), c.residues[len(c.residues)-1].Label())
	}
	if ligands := s.residuesOf(structure.Ligand); len(ligands) > 0 {
		say("Ligands and ions: %s.", listed(ligands))
	}
	if waters := s.residuesOf(structure.Water); len(waters) > 0 {
		say("%s.", unit.Count(len(waters), "water molecule"))
	}
	if len(r.proteins) > 0 {
		say("Radius of gyration of the protein: %.2f Å; %s between residues at least %d apart.", radiusOfGyration(r.proteins), unit.Count(len(r.fold), "contact"), leastSeparation)
	}
	for _, pair := range disulfides(r.proteins) {
		say("Disulfide bond: %s and %s.", pair[0], pair[1])
	}
	for _, g := range r.gaps {
		missing := "consecutive numbers"
		if g.missing > 0 {
			missing = unit.Count(g.missing, "residue") + " missing"
		}
		warn("Chain break between %s and %s: %s.", g.before, g.after, missing)
	}
	for _, c := range s.chains {
		if names := c.unusual(); len(names) > 0 {
			say("Non-standard residues in chain %s: %s.", named(c.ID()), shortened(names))
		}
		if names := c.incomplete(); len(names) > 0 {
			warn("Incomplete backbone in chain %s: %s.", named(c.ID()), shortened(names))
		}
	}
	var alternates []*residue
	for _, x := range s.residues {
		if x.Alternates() {
			alternates = append(alternates, x)
		}
	}
	if len(alternates) > 0 {
		say("Alternate locations (highest occupancy used): %s.", listed(alternates))
	}
	return strings.Join(lines, "\n") + "\n"
}

func named(chain string) string {
	if name, part, _ := strings.Cut(chain, "#"); name == "" {
		return strings.TrimSpace("unnamed " + part)
	}
	return chain
}

func listed(residues []*residue) string {
	names := make([]string, len(residues))
	for k, r := range residues {
		names[k] = r.String()
	}
	return shortened(names)
}

func shortened(names []string) string {
	if more := len(names) - mostListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
