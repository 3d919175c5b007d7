package md

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lammpsKind is a type in the sense of LAMMPS. Beads at the ends of the chain differ
// in mass and charge from the same residue elsewhere.
type lammpsKind struct {
	residue      uint8
	mass, charge float64
}

// lammpsKinds returns the kinds of beads in order of appearance, and the kind of
// each bead, counted from 1 as LAMMPS does.
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

// lammpsBeads are equal chains, one after the other.
type lammpsBeads struct {
	model     *Model
	x, v      []Vec
	low, high Vec // corners of the box
}

// beads are those of one chain in a box with a margin, which LAMMPS shrinks to fit.
func (d *Dynamics) beads() lammpsBeads {
	low, high := corners(d.x)
	return lammpsBeads{d.model, d.x, d.v, low, high}
}

// beads are those of a mixture of one component in its box.
func (d *Motion) beads() lammpsBeads {
	return lammpsBeads{d.mix.shared, d.x, d.v, Vec{}, d.mix.Box}
}

// writeLAMMPSData writes the beads with their velocities and bonds. It writes all
// digits, so that both programs begin with the same bits.
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
		fmt.Fprintf(&b, "%d %.17g # %s\n", k+1, kind.mass, residueLetters[kind.residue:kind.residue+1])
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

// corners are those of a box with a margin around x.
func corners(x []Vec) (low, high Vec) {
	low, high = x[0], x[0]
	for _, p := range x {
		low = Vec{min(low.X, p.X), min(low.Y, p.Y), min(low.Z, p.Z)}
		high = Vec{max(high.X, p.X), max(high.Y, p.Y), max(high.Z, p.Z)}
	}
	margin := Vec{1, 1, 1}
	return low.Sub(margin), high.AddScaled(1, margin)
}

// lammpsPair is the interaction of two kinds of beads by the formulas: it shares
// only parameters with the engine.
type lammpsPair struct {
	sigma, lambda   float64
	strength, kappa float64 // lBkT q q and 1/Debye length
}

func newLAMMPSPair(m *Model, a, b lammpsKind) lammpsPair {
	ra, rb := residues[a.residue], residues[b.residue]
	return lammpsPair{
		sigma:    (ra.sigma + rb.sigma) / 2,
		lambda:   (ra.lambda + rb.lambda) / 2,
		strength: m.lBkT * a.charge * b.charge,
		kappa:    m.kappa,
	}
}

func (p lammpsPair) minimum() float64 { return math.Pow(2, 1.0/6) * p.sigma }

// cutoff is where the last of the pair's potentials ends.
func (p lammpsPair) cutoff() float64 {
	if p.strength != 0 {
		return chargeCutoff
	}
	return stickCutoff
}

func (p lammpsPair) lennardJones(r float64) (energy, force float64) {
	s6 := math.Pow(p.sigma/r, 6)
	return 4 * stickEnergy * (s6*s6 - s6), 24 * stickEnergy * (2*s6*s6 - s6) / r
}

// at is the energy and the force, positive if the beads repel each other.
func (p lammpsPair) at(r float64) (energy, force float64) {
	if r < stickCutoff {
		end, _ := p.lennardJones(stickCutoff)
		energy, force = p.lennardJones(r)
		if r <= p.minimum() {
			energy += stickEnergy * (1 - p.lambda)
		} else {
			energy *= p.lambda
			force *= p.lambda
		}
		energy -= p.lambda * end
	}
	if r < chargeCutoff {
		u := p.strength * math.Exp(-p.kappa*r) / r
		energy += u - p.strength*math.Exp(-p.kappa*chargeCutoff)/chargeCutoff
		force += u * (p.kappa + 1/r)
	}
	return energy, force
}

// lammpsPairs calls f for each pair of kinds.
func lammpsPairs(m *Model, f func(a, b int, p lammpsPair)) {
	kinds, _ := lammpsKinds(m)
	for a := range kinds {
		for b := a; b < len(kinds); b++ {
			f(a+1, b+1, newLAMMPSPair(m, kinds[a], kinds[b]))
		}
	}
}

// exactPairs gives the potentials as LAMMPS's own formulas: Ashbaugh-Hatch is
// lambda times a shifted Lennard-Jones potential, plus 1 - lambda times one that
// ends in its minimum; Debye-Hückel is a shifted Yukawa potential.
func exactPairs(m *Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pair_style hybrid/overlay lj/cut %g lj/cut %g yukawa %.17g %g\n",
		stickCutoff, stickCutoff, m.kappa, chargeCutoff)
	lammpsPairs(m, func(i, j int, p lammpsPair) {
		fmt.Fprintf(&b, "pair_coeff %d %d lj/cut 1 %.17g %.17g\n", i, j, stickEnergy*p.lambda, p.sigma)
		fmt.Fprintf(&b, "pair_coeff %d %d lj/cut 2 %.17g %.17g %.17g\n",
			i, j, stickEnergy*(1-p.lambda), p.sigma, p.minimum())
		if p.strength != 0 {
			fmt.Fprintf(&b, "pair_coeff %d %d yukawa %.17g\n", i, j, p.strength)
		}
	})
	b.WriteString("pair_modify shift yes\n")
	return b.String()
}

// tableStart is where tables begin, in nm. No pair comes so close: two glycines,
// the smallest beads, would have 900 kT there.
const tableStart = 0.26

// tabledPairs gives the potentials as one table for each pair of kinds, in one file
// each in dir. The entries are at the distances of the table style, so that LAMMPS
// does not interpolate them.
func tabledPairs(t testing.TB, dir string, m *Model, s lammpsSettings) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "pair_style table %s %d\n", s.style, s.size)
	lammpsPairs(m, func(i, j int, p lammpsPair) {
		path := filepath.Join(dir, fmt.Sprintf("%d-%d.table", i, j))
		writeText(t, path, p.table(s))
		fmt.Fprintf(&b, "pair_coeff %d %d %s PAIR %g\n", i, j, path, p.cutoff())
	})
	return b.String()
}

func (p lammpsPair) table(s lammpsSettings) string {
	var b strings.Builder
	distances, spacing := evenSquares(s.size, p.cutoff()), "RSQ"
	if s.style == "bitmap" {
		distances, spacing = evenBits(s.size, p.cutoff()), "BITMAP"
	}
	fmt.Fprintf(&b, "# nm, kJ/mol, kJ/mol/nm\n\nPAIR\nN %d %s %g %g\n\n", len(distances), spacing, tableStart, p.cutoff())
	for i, r := range distances {
		energy, force := p.at(r)
		fmt.Fprintf(&b, "%d %.17g %.17g %.17g\n", i+1, r, energy, force)
	}
	return b.String()
}

// evenSquares are n distances with evenly spaced squares.
func evenSquares(n int, end float64) []float64 {
	r := make([]float64, n)
	for i := range r {
		part := float64(i) / float64(n-1)
		r[i] = math.Sqrt(tableStart*tableStart + part*(end*end-tableStart*tableStart))
	}
	return r
}

// evenBits are 2^bits distances whose squares, as float32, contain their index in
// the table: in the top bits of the fraction and the bottom ones of the exponent.
// Indices of squares below that of tableStart, which are never looked up, are used
// for squares above that of the cutoff. One of these is needed: an r² just below
// the cutoff may be rounded up to it. LAMMPS would take it for the smallest one and
// throw the beads apart, which happens within a million steps.
func evenBits(bits int, end float64) []float64 {
	const mantissa = 23
	start := math.Float32bits(tableStart*tableStart) >> mantissa
	octaves := math.Float32bits(float32(end*end))>>mantissa - start
	octaveBits := int(math.Ceil(math.Log2(float64(octaves))))
	period := uint32(1) << (mantissa + octaveBits)
	low := start << mantissa / period * period
	r := make([]float64, 1<<bits)
	for i := range r {
		place := low + uint32(i)<<(mantissa+octaveBits-bits)
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
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
