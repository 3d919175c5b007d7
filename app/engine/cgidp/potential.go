package cgidp

import "math"

// stickPair holds the Ashbaugh-Hatch parameters of two types (JACS 2008, 130,
// 9536), as the force needs them.
type stickPair struct {
	// scale is 12 epsilon within the minimum of the Lennard-Jones potential and
	// that times lambda beyond.
	scale  [2]float64
	sigma6 float64 // 2 sigma⁶, nm⁶
	min2   float64 // nm², where the minimum is: 2^(1/3) sigma²
}

// stickTable has a row and a column for each type. The width is that of a type in
// partner, so that an index needs no bounds check.
type stickTable [len(residueLetters)][maxTypes]stickPair

func newStickTable() *stickTable {
	table := new(stickTable)
	for a := range residues {
		for b := range residues {
			sigma := (residues[a].sigma + residues[b].sigma) / 2
			lambda := (residues[a].lambda + residues[b].lambda) / 2
			table[a][b] = stickPair{
				scale:  [2]float64{12 * stickEnergy, 12 * stickEnergy * lambda},
				sigma6: 2 * math.Pow(sigma, 6),
				min2:   math.Cbrt(2) * sigma * sigma,
			}
		}
	}
	return table
}

func (p *stickPair) lambda() float64 { return p.scale[1] / p.scale[0] }

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
	lambda := p.lambda()
	shift := lambda * p.lennardJones(stickCutoff*stickCutoff)
	if r2 <= p.min2 {
		return p.lennardJones(r2) + stickEnergy*(1-lambda) - shift
	}
	return lambda*p.lennardJones(r2) - shift
}

// forceOverR times the separation is the force. It is cut, not switched, at the
// cutoff: that is how the model was fitted. With a = 2 (sigma/r)⁶ it is
// 12 epsilon (a - 1) a / r². The order of the products keeps short what has to
// wait for the division; the scale is looked up meanwhile, without a branch that
// would often be mispredicted.
func (p *stickPair) forceOverR(r2 float64) float64 {
	u := 1 / r2
	scale := p.scale[math.Float64bits(p.min2-r2)>>63]
	a := (p.sigma6 * u) * (u * u)
	return (a - 1) * (scale * u * a)
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
// bits of r² as a float64 are the number of its segment. The table takes half of
// the fastest cache; with equal segments throughout it would not fit.
const (
	screenMin2     = 0.125 // nm²; the table is not used below
	screenOctaves  = 7     // up to the square of chargeCutoff
	octaveBits     = 6     // 2^6 segments per octave
	segmentShift   = 52 - octaveBits
	segmentMask    = 1<<segmentShift - 1 // bits of r² within a segment
	firstSegment   = (1023 - 3) << octaveBits
	screenSegments = screenOctaves << octaveBits
)

// screenTable gives screenedForceOverR from r² by cubic Hermite interpolation,
// since an exponential per pair would dominate the cost of charged chains.
type screenTable struct {
	kappa   float64
	segment [8 << octaveBits][4]float64 // coefficients of powers of r² minus its start
}

func newScreenTable(kappa float64) *screenTable {
	table := &screenTable{kappa: kappa}
	for k := range screenSegments {
		start, end := segmentStart(k), segmentStart(k+1)
		f0, d0 := table.exact(start)
		f1, d1 := table.exact(end)
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

// exact returns the value at r2 and its derivative.
func (s *screenTable) exact(r2 float64) (value, slope float64) {
	r := math.Sqrt(r2)
	k := s.kappa
	perR := -math.Exp(-k*r) * (k*k/r2 + 3*(1+k*r)/(r2*r2))
	return screenedForceOverR(k, r), perR / (2 * r)
}

// forceOverR is exact where the table ends. The loop over pairs makes this choice
// itself, for the sake of inlining.
func (s *screenTable) forceOverR(r2 float64) float64 {
	if r2 < screenMin2 {
		return screenedForceOverR(s.kappa, math.Sqrt(r2))
	}
	return s.interpolated(r2)
}

// interpolated needs screenMin2 <= r2 < chargeCutoff².
func (s *screenTable) interpolated(r2 float64) float64 {
	bits := math.Float64bits(r2)
	t := r2 - math.Float64frombits(bits&^segmentMask)
	c := &s.segment[(bits>>segmentShift-firstSegment)%uint64(len(s.segment))]
	return (c[0] + t*c[1]) + t*t*(c[2]+t*c[3])
}
