package files

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"molrun/app/base/structure"
	"molrun/app/test/must"
)

// counts are the values on which all readers must agree.
type counts struct {
	Models   int    `json:"models"`
	Chains   int    `json:"chains"`   // polymer chains
	Residues int    `json:"residues"` // residues in polymers
	Ligands  int    `json:"ligands"`
	Waters   int    `json:"waters"`
	Atoms    int    `json:"atoms"` // atoms in the first model, with all alternate locations
	Error    string `json:"error,omitempty"`
}

// together adds ligands to the residues of polymers, so that everything except water is
// counted together.
func (c counts) together() counts {
	c.Residues, c.Ligands, c.Chains = c.Residues+c.Ligands, 0, 0
	return c
}

// atom is an atom of a structure before it is written.
type atom struct {
	name, alternate, residue, chain, insertion, element string
	number, sequence                                    int // sequence is 0 outside polymers
	place                                               [3]float64
	hetero, last                                        bool // last means the last atom of a polymer
}

// molecules is the content of a structure file.
type molecules struct {
	random   *rand.Rand
	residues [][]atom // only for structures read from a file
	atoms    []atom
	want     counts
}

// read returns the residues of a file as molrun reads them; they are confirmed by gemmi's
// counts for that file. It renames chains and renumbers waters so that every format can
// represent them.
func read(t testing.TB, path string) (m molecules) {
	t.Helper()
	model, err := structure.Read(strings.NewReader(must.Read(t, path)))
	must.OK(t, err)
	m.want = counts{Models: 1, Chains: len(model.Chains)}
	var chains []string
	ends := map[string]int{}
	sequence := map[string]int{}
	highest := 0
	for _, r := range model.Residues {
		id := r.ChainID()
		if !slices.Contains(chains, id) {
			chains = append(chains, id)
		}
		made := atom{residue: r.Name, chain: letter(slices.Index(chains, id)), number: r.Number, insertion: r.Insertion}
		switch r.Kind {
		case structure.Water:
			m.want.Waters++
		case structure.Ligand:
			m.want.Ligands++
		default:
			m.want.Residues++
			sequence[id]++
			made.sequence, ends[id] = sequence[id], len(m.residues)
		}
		if r.Kind != structure.Water {
			highest = max(highest, r.Number)
		}
		var atoms []atom
		for _, a := range r.Atoms {
			made.name, made.alternate, made.element, made.place, made.hetero = a.Name, a.Alternate, a.Element, a.Position, a.Hetero
			atoms = append(atoms, made)
		}
		m.residues = append(m.residues, atoms)
	}
	for _, k := range ends {
		r := m.residues[k]
		r[len(r)-1].last = true
	}
	for _, r := range m.residues {
		if r[0].entity() == "3" {
			highest++
			for k := range r {
				r[k].number, r[k].insertion = highest, ""
			}
		}
	}
	return m
}

// protein returns the residues of the lysozyme in the examples.
func protein(t testing.TB) [][]atom {
	t.Helper()
	return read(t, "../../algorithm/builtin/examples/lysozyme.pdb").residues
}

// again returns a copy of the structure, to be written with different random choices.
func (m molecules) again(random *rand.Rand) *molecules {
	m.random = random
	for _, r := range m.residues {
		alone := len(r) == 1 || slices.ContainsFunc(r, func(a atom) bool { return a.alternate != "" })
		if alone || random.IntN(8) > 0 {
			m.atoms = append(m.atoms, r...)
			continue
		}
		m.atoms = append(m.atoms, several(r)...)
	}
	m.want.Atoms = len(m.atoms)
	return &m
}

// invented returns a structure of random chains, ligands and waters.
func invented(random *rand.Rand, of [][]atom) *molecules {
	m := &molecules{random: random, want: counts{Models: 1}}
	chains := 1 + random.IntN(3)
	for k := range chains {
		if k > 0 && random.IntN(4) == 0 {
			m.nucleic(k)
		} else {
			m.chain(k, of)
		}
	}
	for k := range chains {
		m.ligands(k)
	}
	for k := range chains {
		m.waters(k)
	}
	m.want.Atoms = len(m.atoms)
	return m
}

func letter(chain int) string { return string(rune('A' + chain)) }

// polymer adds residues, and marks the last atom as the end of the polymer.
func (m *molecules) polymer(residues int, add func(k int)) {
	for k := range residues {
		add(k)
	}
	m.atoms[len(m.atoms)-1].last = true
	m.want.Chains++
	m.want.Residues += residues
}

// chain adds a segment of a protein in which some residues are modified, have insertion
// codes, or have alternate locations.
func (m *molecules) chain(chain int, of [][]atom) {
	n := 5 + m.random.IntN(20)
	first, number := m.random.IntN(len(of)-n), m.random.IntN(200)-5
	code := ""
	m.polymer(n, func(k int) {
		switch {
		case k > 0 && m.random.IntN(8) == 0 && code < "E":
			code = string(rune(max('A', int((code + "@")[0])+1)))
		default:
			number, code = number+1, ""
		}
		r := slices.Clone(of[first+k])
		modified := m.random.IntN(12) == 0 && k > 0 && k < n-1
		twice := m.random.IntN(8) == 0
		other := m.random.IntN(20) == 0 && !modified
		for i := range r {
			a := &r[i]
			a.chain, a.number, a.insertion, a.sequence, a.last = letter(chain), number, code, k+1, false
			a.place[0] += 100 * float64(chain)
			if modified {
				a.residue, a.hetero = "MSE", true
			}
		}
		switch {
		case other:
			m.atoms = append(m.atoms, alternate(r, "A", "")...)
			m.atoms = append(m.atoms, alternate(r, "B", "XAA")...)
		case twice:
			m.atoms = append(m.atoms, several(r)...)
		default:
			m.atoms = append(m.atoms, r...)
		}
	})
}

// several returns a residue whose side chain has two alternate locations.
func several(r []atom) (all []atom) {
	for _, a := range r {
		if len(a.name) < 2 || a.name == "CA" || a.last {
			all = append(all, a)
			continue
		}
		all = append(all, alternate([]atom{a}, "A", "")[0], alternate([]atom{a}, "B", "")[0])
	}
	return all
}

// alternate returns the atoms at another location. If residue is not empty, they belong
// to that residue.
func alternate(of []atom, code, residue string) []atom {
	all := slices.Clone(of)
	for k := range all {
		all[k].alternate = code
		if residue != "" {
			all[k].residue = "SER"
			if of[0].residue == "SER" {
				all[k].residue = "THR"
			}
		}
		if code == "B" {
			all[k].place[2] += 0.6
		}
	}
	return all
}

// nucleic adds a strand of RNA, with a few atoms in each residue.
func (m *molecules) nucleic(chain int) {
	m.polymer(3+m.random.IntN(6), func(k int) {
		for i, name := range []string{"P", "O5'", "C1'", "C3'", "O3'"} {
			m.atoms = append(m.atoms, atom{
				name: name, residue: string("ACGU"[m.random.IntN(4)]), chain: letter(chain), number: k + 1, sequence: k + 1, element: name[:1],
				place: [3]float64{100*float64(chain) + 7.6*float64(k) + 1.5*float64(i), 50, 0},
			})
		}
		for i := range 5 { // all five atoms are in one residue
			m.atoms[len(m.atoms)-1-i].residue = m.atoms[len(m.atoms)-5].residue
		}
	})
}

// hetero adds a molecule outside the polymers.
func (m *molecules) hetero(chain int, residue string, number int, names ...string) {
	at := [3]float64{100*float64(chain) + 40*m.random.Float64(), 60 + 30*m.random.Float64(), 40 * m.random.Float64()}
	for i, name := range names {
		m.atoms = append(m.atoms, atom{
			name: name, residue: residue, chain: letter(chain), number: number, element: elementOf(name), hetero: true,
			place: [3]float64{at[0] + 1.4*float64(i), at[1], at[2]},
		})
	}
}

func (m *molecules) ligands(chain int) {
	for k := range m.random.IntN(4) {
		switch number := 400 + k; m.random.IntN(4) {
		case 0:
			m.hetero(chain, "GLU", number, "N", "CA", "C", "O", "CB")
		case 1:
			m.hetero(chain, "HEM", number, "FE", "C1", "C2", "N1", "N2", "O1")
		case 2:
			m.hetero(chain, "ZN", number, "ZN")
		case 3:
			m.hetero(chain, "NAG", number, "C1", "O5", "C2", "C3")
		}
		m.want.Ligands++
	}
}

func (m *molecules) waters(chain int) {
	for k := range m.random.IntN(12) {
		m.hetero(chain, []string{"HOH", "DOD", "WAT"}[m.random.IntN(3)], 500+k, "O")
		m.want.Waters++
	}
}

func elementOf(name string) string {
	if name == "FE" || name == "ZN" {
		return name
	}
	return name[:1]
}
