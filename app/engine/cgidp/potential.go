package cgidp

import "math"

// stickPair holds the Ashbaugh-Hatch parameters of two types (JACS 2008, 130,
// 9536).
type stickPair struct {
	sigma6 float64 // 2 sigma⁶, nm⁶
	min2   float64 // nm², where the minimum of Lennard-Jones is: 2^(1/3) sigma²
	lambda float64
}

// stickTable has a row and a column for each type.
type stickTable [len(residueLetters)][len(residueLetters)]stickPair

func newStickTable() *stickTable {
	table := new(stickTable)
	for a := range residues {
		for b := range residues {
			sigma := (residues[a].sigma + residues[b].sigma) / 2
			table[a][b] = stickPair{
				sigma6: 2 * math.Pow(sigma, 6),
				min2:   math.Cbrt(2) * sigma * sigma,
				lambda: (residues[a].lambda + residues[b].lambda) / 2,
			}
		}
	}
	return table
}

// lennardJones is 4 epsilon [(sigma/r)¹² - (sigma/r)⁶] in kJ/mol.
func (p *stickPair) lennardJones(r2 float64) float64 {
	a := p.sigma6 / (r2 * r2 * r2)
	return stickEnergy * a * (a - 2)
}

// energy is in kJ/mol, zero from the cutoff on.
func (p *stickPair) energy(r2 float64) float64 {
	if !(r2 < stickCutoff*stickCutoff) {
		return 0
	}
	shift := p.lambda * p.lennardJones(stickCutoff*stickCutoff)
	if r2 <= p.min2 {
		return p.lennardJones(r2) + stickEnergy*(1-p.lambda) - shift
	}
	return p.lambda*p.lennardJones(r2) - shift
}

// stickScale is 12 epsilon, kJ/mol.
const stickScale = 12 * stickEnergy

// halfStick returns what a bead of a type adds to the parameters of its pairs in
// stickForce.
func halfStick(kind uint8) (size, strength float64) {
	r := residues[kind]
	return math.Pow(2, 1.0/6) * r.sigma / 2, stickScale * r.lambda / 2
}

// stickForce times the separation is the Ashbaugh-Hatch force for r² in nm²; the
// size of the pair is 2^(1/6) sigma, its strength 12 epsilon lambda. It is cut,
// not switched, at the cutoff: that is how the model was fitted. With
// a = 2 (sigma/r)⁶ Lennard-Jones gives 12 epsilon (a - 1) a / r², and within the
// minimum, where a is above 1, lambda does not count.
//
// Conversions keep products from being fused with sums, so that all
// architectures give the same bits as the vector code.
func stickForce(r2, size, strength float64) float64 {
	u := 1 / r2
	b := float64(size*size) * u
	a := float64(float64(b*b) * b)
	if a >= 1 {
		strength = stickScale
	}
	return (a - 1) * (float64(strength*u) * a)
}

// screenedEnergy is the Debye-Hückel energy of two charges with
// strength = lBkT q q, in kJ/mol, zero from the cutoff on.
func screenedEnergy(strength, kappa, r float64) float64 {
	if !(r < chargeCutoff) {
		return 0
	}
	return strength * (math.Exp(-kappa*r)/r - math.Exp(-kappa*chargeCutoff)/chargeCutoff)
}

// screenedForceOverR is F/r of Debye-Hückel for strength 1, in 1/nm³.
func screenedForceOverR(kappa, r float64) float64 {
	return math.Exp(-kappa*r) * (1 + kappa*r) / (r * r * r)
}

// Segments of screenTable. Each octave of r² is cut into equal parts, so the top
// bits of r² as a float64 are the number of its segment. What chains visit, from
// 0.4 nm on, fits into half of the fastest cache; with equal segments throughout
// it would not.
const (
	screenOctaves  = 16                  // up to the square of chargeCutoff
	screenMin2     = 1.0 / (1 << 12)     // nm², the start of the first
	octaveBits     = 6                   // 2^6 segments per octave
	segmentShift   = 52 - octaveBits     // of the bits of r²
	segmentMask    = 1<<segmentShift - 1 // bits of r² within a segment
	firstSegment   = (1023 - 12) << octaveBits
	screenSegments = screenOctaves << octaveBits
)

// screenTable gives the force of Debye-Hückel from r² by cubic Hermite
// interpolation, since an exponential per pair would dominate the cost of charged
// chains. Below 0.016 nm, closer than beads of half a nanometre ever come, it
// stays at its value there.
type screenTable struct {
	segment [screenSegments][4]float64 // coefficients of powers of r² minus its start
}

func newScreenTable(kappa float64) *screenTable {
	table := new(screenTable)
	for k := range screenSegments {
		start, end := segmentStart(k), segmentStart(k+1)
		f0, d0 := screenedSlope(kappa, start)
		f1, d1 := screenedSlope(kappa, end)
		h := end - start
		secant := (f1 - f0) / h
		table.segment[k] = [4]float64{f0, d0, (3*secant - 2*d0 - d1) / h, (d0 + d1 - 2*secant) / (h * h)}
	}
	return table
}

// segmentStart is the least r² of a segment.
func segmentStart(k int) float64 {
	return math.Float64frombits(uint64(k+firstSegment) << segmentShift)
}

// screenedSlope returns screenedForceOverR at r² and its derivative by r².
func screenedSlope(kappa, r2 float64) (value, slope float64) {
	r, k := math.Sqrt(r2), kappa
	perR := -math.Exp(-k*r) * (k*k/r2 + 3*(1+k*r)/(r2*r2))
	return screenedForceOverR(k, r), perR / (2 * r)
}

// forceOverR is for r² below the square of chargeCutoff and strength 1.
func (s *screenTable) forceOverR(r2 float64) float64 {
	r2 = max(r2, screenMin2)
	bits := math.Float64bits(r2)
	t := r2 - math.Float64frombits(bits&^segmentMask)
	c := &s.segment[(bits>>segmentShift-firstSegment)%screenSegments]
	return (c[0] + float64(t*c[1])) + float64(float64(t*t)*(c[2]+float64(t*c[3])))
}
