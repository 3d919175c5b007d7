package md

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// lammpsKind is a LAMMPS atom type. Beads at the ends of the chain differ in mass and
// charge from the same residue elsewhere.
type lammpsKind struct {
	residue      uint8
	mass, charge float64
}

// lammpsKinds returns the kinds of beads in order of appearance, and the kind of each
// bead, counted from 1 as in LAMMPS.
func lammpsKinds(m *Model) (kinds []lammpsKind, of []int) {
	place := map[lammpsKind]int{}
	for i := range m.Size() {
		k := lammpsKind{m.types[i], m.mass[i], m.charge[i]}
		if place[k] == 0 {
			kinds = append(kinds, k)
			place[k] = len(kinds)
		}
		of = append(of, place[k])
	}
	return kinds, of
}

// lammpsBeads holds identical chains, one after another.
type lammpsBeads struct {
	model     *Model
	x, v      []Vec
	low, high Vec // corners of the box
}

// beads returns one chain in a box with a margin, which LAMMPS shrinks to fit.
func (d *Dynamics) beads() lammpsBeads {
	low, high := corners(d.x)
	return lammpsBeads{d.model, d.x, d.v, low, high}
}

// beads returns a mixture of one component in its box.
func (d *Motion) beads() lammpsBeads {
	return lammpsBeads{d.mix.shared, d.x, d.v, Vec{}, d.mix.Box}
}

// writeLAMMPSData writes the beads with their velocities and bonds. It writes all digits,
// so that both programs start from the same bits.
func writeLAMMPSData(t testing.TB, path string, c lammpsBeads) {
	t.Helper()
	kinds, of := lammpsKinds(c.model)
	residues := c.model.Size()
	chains := len(c.x) / residues
	var b strings.Builder
	fmt.Fprintf(&b, "beads in nm, nm/ps, g/mol\n\n%d atoms\n%d bonds\n%d atom types\n1 bond types\n",
		len(c.x), len(c.x)-chains, len(kinds))
	fmt.Fprintf(&b, "%g %g xlo xhi\n%g %g ylo yhi\n%g %g zlo zhi\n", c.low.X, c.high.X, c.low.Y, c.high.Y, c.low.Z, c.high.Z)
	b.WriteString("\nMasses\n\n")
	for k, kind := range kinds {
		fmt.Fprintf(&b, "%d %.17g # %s\n", k+1, kind.mass, Letters[kind.residue:kind.residue+1])
	}
	b.WriteString("\nAtoms # bond\n\n")
	for i, x := range c.x {
		fmt.Fprintf(&b, "%d %d %d %.17g %.17g %.17g\n", i+1, i/residues+1, of[i%residues], x.X, x.Y, x.Z)
	}
	b.WriteString("\nVelocities\n\n")
	for i, v := range c.v {
		fmt.Fprintf(&b, "%d %.17g %.17g %.17g\n", i+1, v.X, v.Y, v.Z)
	}
	b.WriteString("\nBonds\n\n")
	bond := 0
	for i := range c.x {
		if i%residues > 0 {
			bond++
			fmt.Fprintf(&b, "%d 1 %d %d\n", bond, i, i+1)
		}
	}
	writeText(t, path, b.String())
}

// corners returns the corners of a box with a margin around x.
func corners(x []Vec) (low, high Vec) {
	low, high = x[0], x[0]
	for _, p := range x {
		low = Vec{min(low.X, p.X), min(low.Y, p.Y), min(low.Z, p.Z)}
		high = Vec{max(high.X, p.X), max(high.Y, p.Y), max(high.Z, p.Z)}
	}
	margin := Vec{1, 1, 1}
	return low.Sub(margin), high.AddScaled(1, margin)
}

// lammpsPairs calls f for each pair of kinds.
func lammpsPairs(m *Model, f func(a, b int, p enginetest.Pair)) {
	kinds, _ := lammpsKinds(m)
	for a := range kinds {
		for b := a; b < len(kinds); b++ {
			f(a+1, b+1, plainPair(m, kinds[a].residue, kinds[b].residue, kinds[a].charge*kinds[b].charge))
		}
	}
}

// exactPairs expresses the potentials in LAMMPS's own formulas: Ashbaugh–Hatch is lambda
// times a shifted Lennard-Jones potential, plus 1 - lambda times one that is cut off at
// its minimum; Debye–Hückel is a shifted Yukawa potential.
func exactPairs(_ testing.TB, _ string, m *Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pair_style hybrid/overlay lj/cut %g lj/cut %g yukawa %.17g %g\n",
		ashbaughHatchCutoff, ashbaughHatchCutoff, m.kappa, chargeCutoff)
	lammpsPairs(m, func(i, j int, p enginetest.Pair) {
		fmt.Fprintf(&b, "pair_coeff %d %d lj/cut 1 %.17g %.17g\n", i, j, ashbaughHatchEnergy*p.Lambda, p.Sigma)
		fmt.Fprintf(&b, "pair_coeff %d %d lj/cut 2 %.17g %.17g %.17g\n",
			i, j, ashbaughHatchEnergy*(1-p.Lambda), p.Sigma, p.Minimum())
		if p.Strength != 0 {
			fmt.Fprintf(&b, "pair_coeff %d %d yukawa %.17g\n", i, j, p.Strength)
		}
	})
	b.WriteString("pair_modify shift yes\n")
	return b.String()
}

// tableStart is the start of the tables, in nm. No pair comes this close: two glycines,
// the smallest beads, would have an energy of 900 kT.
const tableStart = 0.26

// tableBits is the number of bits of a table index; README.md in testdata/lammps lists
// other tables that were tried.
const tableBits = 9

// tabledPairs tabulates the potentials, one table and file in dir per pair of kinds. The
// entries are at the distances of the table style, so that LAMMPS does not interpolate
// them.
func tabledPairs(t testing.TB, dir string, m *Model) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "pair_style table bitmap %d\n", tableBits)
	lammpsPairs(m, func(i, j int, p enginetest.Pair) {
		path := filepath.Join(dir, fmt.Sprintf("%d-%d.table", i, j))
		writeText(t, path, lammpsTable(p))
		fmt.Fprintf(&b, "pair_coeff %d %d %s PAIR %g\n", i, j, path, pairCutoff(p))
	})
	return b.String()
}

// pairCutoff returns the largest cutoff of a pair's potentials.
func pairCutoff(p enginetest.Pair) float64 {
	if p.Strength != 0 {
		return chargeCutoff
	}
	return ashbaughHatchCutoff
}

func lammpsTable(p enginetest.Pair) string {
	var b strings.Builder
	distances := evenBits(pairCutoff(p))
	fmt.Fprintf(&b, "# nm, kJ/mol, kJ/mol/nm\n\nPAIR\nN %d BITMAP %g %g\n\n", len(distances), tableStart, pairCutoff(p))
	for i, r := range distances {
		ashbaughHatch, ashbaughHatchForce := p.AshbaughHatch(r)
		debyeHueckel, debyeHueckelForce := p.DebyeHueckel(r)
		fmt.Fprintf(&b, "%d %.17g %.17g %.17g\n", i+1, r, ashbaughHatch+debyeHueckel, ashbaughHatchForce+debyeHueckelForce)
	}
	return b.String()
}

// evenBits returns 2^tableBits distances whose squares, as float32, contain their index
// in the table: in the top bits of the fraction and the bottom bits of the exponent.
// Indexes of squares below that of tableStart, which are never looked up, are used for
// squares above that of the cutoff. One of these is needed because an r² just below the
// cutoff might be rounded up to it. Otherwise LAMMPS would use the entry of the smallest
// distance for it and eject the beads, which happens within a million steps.
func evenBits(end float64) []float64 {
	const mantissa = 23
	start := math.Float32bits(tableStart*tableStart) >> mantissa
	octaves := math.Float32bits(float32(end*end))>>mantissa - start
	octaveBits := int(math.Ceil(math.Log2(float64(octaves))))
	period := uint32(1) << (mantissa + octaveBits)
	low := start << mantissa / period * period
	r := make([]float64, 1<<tableBits)
	for i := range r {
		place := low + uint32(i)<<(mantissa+octaveBits-tableBits)
		square := float64(math.Float32frombits(place))
		if square < tableStart*tableStart {
			square = float64(math.Float32frombits(place + period))
		}
		r[i] = math.Sqrt(square)
	}
	return r
}

func writeText(t testing.TB, path, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
}
