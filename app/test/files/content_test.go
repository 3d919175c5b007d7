package files

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// counts are what readers have to agree on.
type counts struct {
	Models   int    `json:"models"`
	Chains   int    `json:"chains"`   // with polymers
	Residues int    `json:"residues"` // of polymers
	Ligands  int    `json:"ligands"`
	Waters   int    `json:"waters"`
	Atoms    int    `json:"atoms"` // of the first model, at all their places
	Error    string `json:"error,omitempty"`
}

// together counts ligands with the residues of polymers, as all that is not water.
func (c counts) together() counts {
	c.Residues, c.Ligands, c.Chains = c.Residues+c.Ligands, 0, 0
	return c
}

// atom is an atom of a structure, before somebody writes it.
type atom struct {
	name, alternate, residue, chain, insertion, element string
	number, sequence                                    int // sequence 0: no part of a polymer
	place                                               [3]float64
	hetero, last                                        bool // last of a polymer
}

// molecules is the content of a file.
type molecules struct {
	random *rand.Rand
	atoms  []atom
	want   counts
}

// protein returns the residues of the lysozyme in the examples.
func protein(t testing.TB) (residues [][]atom) {
	t.Helper()
	text, err := os.ReadFile("../../algorithm/builtin/examples/lysozyme.pdb")
	must.OK(t, err)
	number := ""
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "ATOM") {
			continue
		}
		if line[22:26] != number {
			number = line[22:26]
			residues = append(residues, nil)
		}
		a := atom{name: strings.TrimSpace(line[12:16]), residue: line[17:20], element: strings.TrimSpace(line[76:78])}
		for k := range a.place {
			a.place[k], err = strconv.ParseFloat(strings.TrimSpace(line[30+8*k:38+8*k]), 64)
			must.OK(t, err)
		}
		last := len(residues) - 1
		residues[last] = append(residues[last], a)
	}
	return residues
}

// content makes a structure of chains, ligands and water.
func content(random *rand.Rand, of [][]atom) *molecules {
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

// polymer adds residues, and ends the polymer behind the last atom.
func (m *molecules) polymer(residues int, add func(k int)) {
	for k := range residues {
		add(k)
	}
	m.atoms[len(m.atoms)-1].last = true
	m.want.Chains++
	m.want.Residues += residues
}

// chain adds a part of a protein, some residues of which are modified, have insertion codes,
// or are at two places.
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
		several := m.random.IntN(8) == 0
		other := m.random.IntN(20) == 0 && !modified
		for i := range r {
			a := &r[i]
			a.chain, a.number, a.insertion, a.sequence = letter(chain), number, code, k+1
			a.place[0] += 100 * float64(chain)
			if modified {
				a.residue, a.hetero = "MSE", true
			}
		}
		switch {
		case other:
			m.atoms = append(m.atoms, alternate(r, "A", "")...)
			m.atoms = append(m.atoms, alternate(r, "B", "XAA")...)
		case several:
			for _, a := range r {
				if len(a.name) < 2 || a.name == "CA" {
					m.atoms = append(m.atoms, a)
					continue
				}
				m.atoms = append(m.atoms, alternate([]atom{a}, "A", "")[0], alternate([]atom{a}, "B", "")[0])
			}
		default:
			m.atoms = append(m.atoms, r...)
		}
	})
}

// alternate returns atoms at another place, of another residue if it has a name.
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

// nucleic adds a strand of RNA, of a few atoms in each residue.
func (m *molecules) nucleic(chain int) {
	m.polymer(3+m.random.IntN(6), func(k int) {
		for i, name := range []string{"P", "O5'", "C1'", "C3'", "O3'"} {
			m.atoms = append(m.atoms, atom{
				name: name, residue: string("ACGU"[m.random.IntN(4)]), chain: letter(chain), number: k + 1, sequence: k + 1, element: name[:1],
				place: [3]float64{100*float64(chain) + 7.6*float64(k) + 1.5*float64(i), 50, 0},
			})
		}
		for i := range 5 { // of one residue
			m.atoms[len(m.atoms)-1-i].residue = m.atoms[len(m.atoms)-5].residue
		}
	})
}

// hetero adds a molecule that is no polymer.
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
