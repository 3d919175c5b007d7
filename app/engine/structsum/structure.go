package structsum

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"molrun/app/base/structure"
)

// kind is what a residue is.
type kind string

const (
	protein kind = "protein"
	nucleic kind = "nucleic"
	water   kind = "water"
	ligand  kind = "ligand" // or ion
)

// residue is a group of heavy atoms with one number in one chain.
type residue struct {
	chain, name, insertion string
	number                 int
	kind                   kind
	atoms                  []*structure.Atom
	alternate              bool // some atoms are at several places
}

// String is the residue as people write it, such as A:LYS13.
func (r *residue) String() string {
	return fmt.Sprintf("%s:%s%d%s", r.chain, r.name, r.number, r.insertion)
}

// label is its number in the chain, with the insertion code.
func (r *residue) label() string { return fmt.Sprintf("%d%s", r.number, r.insertion) }

func (r *residue) atom(name string) *structure.Atom {
	for _, a := range r.atoms {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// letters are the one-letter codes of the standard amino acids, and of their usual names in
// other states of protonation.
var letters = map[string]string{}

func init() {
	for pair := range strings.FieldsSeq(`ALA:A ARG:R ASN:N ASP:D CYS:C GLN:Q GLU:E GLY:G HIS:H ILE:I LEU:L LYS:K MET:M PHE:F PRO:P
		SER:S THR:T TRP:W TYR:Y VAL:V HID:H HIE:H HIP:H HSD:H HSE:H HSP:H CYX:C CYM:C ASH:D GLH:E LYN:K ARN:R TYM:Y`) {
		name, letter, _ := strings.Cut(pair, ":")
		letters[name] = letter
	}
}

var (
	waters  = []string{"HOH", "WAT", "DOD", "H2O", "SOL", "TIP", "TIP3", "TP3", "SPC"}
	nucleos = []string{"A", "C", "G", "U", "I", "DA", "DC", "DG", "DT", "DU", "DI"}
)

// letter is the one-letter code, X for a residue that is not standard.
func (r *residue) letter() string { return cmp.Or(letters[r.name], "X") }

func (r *residue) standard() bool { return letters[r.name] != "" }

func kindOf(r *residue) kind {
	switch {
	case r.standard():
		return protein
	case slices.Contains(waters, r.name):
		return water
	case slices.Contains(nucleos, r.name):
		return nucleic
	case r.atom("N") != nil && r.atom("CA") != nil && r.atom("C") != nil: // such as MSE
		return protein
	case r.atom("C1'") != nil && r.atom("O3'") != nil && r.atom("O5'") != nil && len(r.atoms) < 30: // a modified nucleotide; coenzymes are larger
		return nucleic
	}
	return ligand
}

// model is the first model of a file.
type model struct {
	models   int
	residues []*residue // in the order of the file
}

// read reads a PDB or mmCIF file.
func read(file io.Reader) (*model, error) {
	s := &model{}
	type key struct {
		chain, insertion, name string
		number                 int
	}
	at := map[key]*residue{}
	models, err := structure.Read(file, func(a *structure.Atom) {
		if a.Element == "H" || a.Element == "D" {
			return
		}
		k := key{a.Chain, a.Insertion, a.Residue, a.Number}
		r := at[k]
		if r == nil {
			r = &residue{chain: a.Chain, name: a.Residue, number: a.Number, insertion: a.Insertion}
			at[k] = r
			s.residues = append(s.residues, r)
		}
		r.add(a)
	})
	if err != nil {
		return nil, fmt.Errorf("the structure %w", err)
	}
	if len(s.residues) == 0 {
		return nil, errors.New("the structure has no atoms")
	}
	s.models = models
	for _, r := range s.residues {
		r.kind = kindOf(r)
	}
	return s, nil
}

// add adds an atom, or lets it take the place of one that is there less often.
func (r *residue) add(a *structure.Atom) {
	if a.Alternate != "" {
		r.alternate = true
		for k, other := range r.atoms {
			if other.Name == a.Name {
				if a.Occupancy > other.Occupancy {
					r.atoms[k] = a
				}
				return
			}
		}
	}
	r.atoms = append(r.atoms, a)
}

func distance(a, b *structure.Atom) float64 {
	x, y, z := a.Place[0]-b.Place[0], a.Place[1]-b.Place[1], a.Place[2]-b.Place[2]
	return math.Sqrt(x*x + y*y + z*z)
}

func (s *model) of(k kind) (some []*residue) {
	for _, r := range s.residues {
		if r.kind == k {
			some = append(some, r)
		}
	}
	return some
}

// masses of the elements in biomolecules, in u; others count as carbon.
var masses = map[string]float64{
	"C": 12.011, "N": 14.007, "O": 15.999, "S": 32.06, "P": 30.974, "SE": 78.971,
	"F": 18.998, "CL": 35.45, "BR": 79.904, "I": 126.904,
}

// radiusOfGyration is that of the heavy atoms of residues, weighted by mass.
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
			centre[k] += mass * a.Place[k]
		}
	})
	sum := 0.0
	each(func(mass float64, a *structure.Atom) {
		for k := range centre {
			d := a.Place[k] - centre[k]/total
			sum += mass * d * d
		}
	})
	return math.Sqrt(sum / total)
}
