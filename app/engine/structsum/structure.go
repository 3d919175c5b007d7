package structsum

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"molrun/app/base/structure"
)

// residue holds the heavy atoms of a residue, each at its location of highest occupancy.
type residue struct {
	*structure.Residue
	atoms []*structure.Atom
	index int // position in its chain, counting missing residues
}

func (r *residue) atom(name string) *structure.Atom {
	for _, a := range r.atoms {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// model is the first model of a file.
type model struct {
	*structure.Model
	residues []*residue // in file order
	chains   []*chain   // polymers
}

// readStructure reads a PDB or mmCIF file.
func readStructure(file io.Reader) (*model, error) {
	m, err := structure.Read(file)
	if err != nil {
		return nil, fmt.Errorf("the structure %w", err)
	}
	s := &model{Model: m}
	own := map[*structure.Residue]*residue{}
	for _, r := range m.Residues {
		heavy := slices.DeleteFunc(r.Places(), func(a *structure.Atom) bool { return a.Hydrogen() })
		if len(heavy) > 0 {
			own[r] = &residue{Residue: r, atoms: heavy}
			s.residues = append(s.residues, own[r])
		}
	}
	if len(s.residues) == 0 {
		return nil, errors.New("the structure has no atoms")
	}
	for _, c := range m.Chains {
		polymer := &chain{Chain: c}
		for _, r := range c.Residues {
			if own[r] != nil {
				polymer.residues = append(polymer.residues, own[r])
			}
		}
		if len(polymer.residues) > 0 {
			polymer.count()
			s.chains = append(s.chains, polymer)
		}
	}
	return s, nil
}

func (s *model) residuesOf(k structure.Kind) (some []*residue) {
	for _, r := range s.residues {
		if r.Kind == k {
			some = append(some, r)
		}
	}
	return some
}

// masses of elements in biomolecules, in u; others count as carbon.
var masses = map[string]float64{
	"C": 12.011, "N": 14.007, "O": 15.999, "S": 32.06, "P": 30.974, "SE": 78.971,
	"F": 18.998, "CL": 35.45, "BR": 79.904, "I": 126.904,
}

// radiusOfGyration returns the mass-weighted radius of gyration of the heavy atoms of
// residues.
func radiusOfGyration(residues []*residue) float64 {
	var total float64
	var centre [3]float64
	each := func(f func(mass float64, a *structure.Atom)) {
		for _, r := range residues {
			for _, a := range r.atoms {
				f(cmp.Or(masses[a.Element], masses["C"]), a)
			}
		}
	}
	each(func(mass float64, a *structure.Atom) {
		total += mass
		for k := range centre {
			centre[k] += mass * a.Position[k]
		}
	})
	sum := 0.0
	each(func(mass float64, a *structure.Atom) {
		for k := range centre {
			d := a.Position[k] - centre[k]/total
			sum += mass * d * d
		}
	})
	return math.Sqrt(sum / total)
}
