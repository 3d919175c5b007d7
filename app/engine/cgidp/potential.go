package cgidp

import "math"

// stickPair holds the Ashbaugh-Hatch parameters of two types (JACS 2008, 130,
// 9536). It has what the force needs and no more, to stay in the fastest cache.
type stickPair struct {
	sigma6 float64
	// scale is 24 epsilon within the minimum of the Lennard-Jones potential and
	// that times lambda beyond.
	scale [2]float64
}

// stickTable has a row and a column for each type. The width is a power of two,
// so that a masked index needs no bounds check.
type stickTable [len(residueLetters)][32]stickPair

func newStickTable() *stickTable {
	table := new(stickTable)
	for a := range residues {
		for b := range residues {
			sigma := (residues[a].sigma + residues[b].sigma) / 2
			lambda := (residues[a].lambda + residues[b].lambda) / 2
			table[a][b] = stickPair{math.Pow(sigma, 6), [2]float64{24 * stickEnergy, 24 * stickEnergy * lambda}}
		}
	}
	return table
}

func (p *stickPair) lambda() float64 { return p.scale[1] / p.scale[0] }

// lennardJones is 4 epsilon [(sigma/r)¹² - (sigma/r)⁶] in kJ/mol.
func (p *stickPair) lennardJones(r2 float64) float64 {
	a := p.sigma6 / (r2 * r2 * r2)
	return 4 * stickEnergy * (a*a - a)
}

// energy is in kJ/mol, zero from the cutoff on.
func (p *stickPair) energy(r2 float64) float64 {
	if !(r2 < stickCutoff*stickCutoff) {
		return 0
	}
	lambda := p.lambda()
	shift := lambda * p.lennardJones(stickCutoff*stickCutoff)
	if r2 <= math.Cbrt(2*p.sigma6) {
		return p.lennardJones(r2) + stickEnergy*(1-lambda) - shift
	}
	return lambda*p.lennardJones(r2) - shift
}

// forceOverR times the separation is the force. It is cut, not switched, at the
// cutoff: that is how the model was fitted. With a = (sigma/r)⁶ it is
// 24 epsilon (2a - 1) a / r², and the minimum is where 2a - 1 changes sign.
func (p *stickPair) forceOverR(r2 float64) float64 {
	u := 1 / r2
	a := p.sigma6 * (u * u * u)
	b := 2*a - 1
	return b * a * u * p.scale[math.Float64bits(b)>>63]
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

// Segments of screenTable, which are equal in r².
const (
	screenSegments = 2048
	screenPerNm2   = screenSegments / (chargeCutoff * chargeCutoff)
	screenMin2     = 0.16 // nm²; the table is not used below
)

// screenTable gives screenedForceOverR from r² by cubic Hermite interpolation,
// since an exponential per pair would dominate the cost of charged chains.
type screenTable struct {
	kappa   float64
	segment [screenSegments][4]float64 // coefficients of 1, t, t², t³
}

func newScreenTable(kappa float64) *screenTable {
	table := &screenTable{kappa: kappa}
	for k := 1; k < screenSegments; k++ {
		f0, d0 := table.exact(float64(k) / screenPerNm2)
		f1, d1 := table.exact(float64(k+1) / screenPerNm2)
		rise := f1 - f0
		table.segment[k] = [4]float64{f0, d0, 3*rise - 2*d0 - d1, d0 + d1 - 2*rise}
	}
	return table
}

// exact returns the value at r2 and its derivative per segment.
func (s *screenTable) exact(r2 float64) (value, slope float64) {
	r := math.Sqrt(r2)
	k := s.kappa
	value = screenedForceOverR(k, r)
	perR := -math.Exp(-k*r) * (k*k/r2 + 3*(1+k*r)/(r2*r2))
	return value, perR / (2 * r) / screenPerNm2
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
	t := r2 * screenPerNm2
	k := int32(t)
	t -= float64(k)
	c := &s.segment[k&(screenSegments-1)]
	return c[0] + t*(c[1]+t*(c[2]+t*c[3]))
}
