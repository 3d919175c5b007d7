package md

import "math"

// Constants of bonds and of the Ashbaugh–Hatch potential.
const (
	bondStiffness       = 8033.0 // kJ/mol/nm²
	bondLength          = 0.38   // nm
	ashbaughHatchEnergy = 0.8368 // kJ/mol, 0.2 kcal/mol: epsilon of Ashbaugh–Hatch
	ashbaughHatchCutoff = 2.0    // nm
)

// ashbaughHatchPair holds the Ashbaugh–Hatch parameters of two types (JACS 2008, 130, 9536).
type ashbaughHatchPair struct {
	sigma6 float64 // 2 sigma⁶, nm⁶
	min2   float64 // squared distance of the Lennard-Jones minimum, 2^(1/3) sigma², nm²
	lambda float64
}

// ashbaughHatchTable has a row and a column for each type.
type ashbaughHatchTable [len(Letters)][len(Letters)]ashbaughHatchPair

func newAshbaughHatchTable() *ashbaughHatchTable {
	table := new(ashbaughHatchTable)
	for a := range residues {
		for b := range residues {
			sigma := (residues[a].sigma + residues[b].sigma) / 2
			table[a][b] = ashbaughHatchPair{
				sigma6: 2 * math.Pow(sigma, 6),
				min2:   math.Cbrt(2) * sigma * sigma,
				lambda: (residues[a].lambda + residues[b].lambda) / 2,
			}
		}
	}
	return table
}

// lennardJones returns 4 epsilon [(sigma/r)¹² - (sigma/r)⁶] in kJ/mol.
func (p *ashbaughHatchPair) lennardJones(r2 float64) float64 {
	a := p.sigma6 / (r2 * r2 * r2)
	return ashbaughHatchEnergy * a * (a - 2)
}

// energy returns the Ashbaugh–Hatch energy in kJ/mol, zero beyond the cutoff.
func (p *ashbaughHatchPair) energy(r2 float64) float64 {
	if !(r2 < ashbaughHatchCutoff*ashbaughHatchCutoff) {
		return 0
	}
	shift := p.lambda * p.lennardJones(ashbaughHatchCutoff*ashbaughHatchCutoff)
	if r2 <= p.min2 {
		return p.lennardJones(r2) + ashbaughHatchEnergy*(1-p.lambda) - shift
	}
	return p.lambda*p.lennardJones(r2) - shift
}

// ashbaughHatchScale is 12 epsilon, kJ/mol.
const ashbaughHatchScale = 12 * ashbaughHatchEnergy

// halfAshbaughHatch returns the contribution of one bead to the parameters of its pairs in
// ashbaughHatchForce.
func halfAshbaughHatch(kind uint8) (size, strength float64) {
	r := residues[kind]
	return power(2, 1.0/6) * r.sigma / 2, ashbaughHatchScale * r.lambda / 2
}

// ashbaughHatchForce returns the Ashbaugh–Hatch force divided by the distance for r² in nm². The
// size of the pair is 2^(1/6) sigma, its strength 12 epsilon lambda. The force is
// truncated at the cutoff, not switched: the model was parameterized that way. With a = 2
// (sigma/r)⁶, Lennard-Jones gives 12 epsilon (a - 1) a / r². Inside the minimum, where a
// is above 1, lambda has no effect.
//
// The conversions to the same type keep the compiler from fusing products with sums, so
// that all architectures give the same bits as the vector code.
func ashbaughHatchForce[F float32 | float64](r2, size, strength F) F {
	u := 1 / r2
	b := F(size*size) * u
	a := F(F(b*b) * b)
	if a >= 1 {
		strength = ashbaughHatchScale
	}
	return (a - 1) * (F(strength*u) * a)
}
