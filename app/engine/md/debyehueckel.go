package md

import "math"

// chargeCutoff is the cutoff of the Debye–Hückel potential in nm.
const chargeCutoff = 4.0

// debyeHueckelEnergy returns the Debye–Hückel energy of two charges with strength = lBkT q q,
// in kJ/mol, shifted to zero at the cutoff and zero beyond it.
func debyeHueckelEnergy(strength, kappa, r float64) float64 {
	if !(r < chargeCutoff) {
		return 0
	}
	return strength * (Exp(-kappa*r)/r - Exp(-kappa*chargeCutoff)/chargeCutoff)
}

// debyeHueckelForceOverR returns the Debye–Hückel F/r for strength 1, in 1/nm³.
func debyeHueckelForceOverR(kappa, r float64) float64 {
	return Exp(-kappa*r) * (1 + kappa*r) / (r * r * r)
}

// Segments of debyeHueckelTable. Each octave of r² is divided into equal parts, so the top bits
// of r² as a float64 are the index of its segment. The segments in use, from 0.4 nm on,
// fit into half of the L1 cache; segments of equal width would not.
const (
	debyeHueckelOctaves  = 16                  // up to the square of chargeCutoff
	debyeHueckelMin2     = 1.0 / (1 << 12)     // nm², start of the first segment
	octaveBits           = 6                   // 2^6 segments per octave
	segmentShift         = 52 - octaveBits     // of the bits of r²
	segmentMask          = 1<<segmentShift - 1 // bits of r² within a segment
	firstSegment         = (1023 - 12) << octaveBits
	debyeHueckelSegments = debyeHueckelOctaves << octaveBits
)

// debyeHueckelTable interpolates the Debye–Hückel force as a function of r² by cubic
// Hermite splines, because computing an exponential per pair would dominate the cost of
// charged chains. Below 0.016 nm the force is constant; beads half a nanometer in
// diameter never come that close.
type debyeHueckelTable struct {
	segment [debyeHueckelSegments][4]float64 // coefficients of powers of r² minus its start
}

func newDebyeHueckelTable(kappa float64) *debyeHueckelTable {
	table := new(debyeHueckelTable)
	for k := range debyeHueckelSegments {
		start, end := segmentStart(k), segmentStart(k+1)
		f0, d0 := debyeHueckelSlope(kappa, start)
		f1, d1 := debyeHueckelSlope(kappa, end)
		h := end - start
		secant := (f1 - f0) / h
		table.segment[k] = [4]float64{f0, d0, (3*secant - 2*d0 - d1) / h, (d0 + d1 - 2*secant) / (h * h)}
	}
	return table
}

// segmentStart returns the smallest r² of a segment.
func segmentStart(k int) float64 {
	return math.Float64frombits(uint64(k+firstSegment) << segmentShift)
}

// debyeHueckelSlope returns debyeHueckelForceOverR at r² and its derivative with respect to r².
func debyeHueckelSlope(kappa, r2 float64) (value, slope float64) {
	r, k := math.Sqrt(r2), kappa
	perR := -Exp(-k*r) * (k*k/r2 + 3*(1+k*r)/(r2*r2))
	return debyeHueckelForceOverR(k, r), perR / (2 * r)
}

// forceOverR returns F/r for strength 1 and r² below the square of chargeCutoff.
func (s *debyeHueckelTable) forceOverR(r2 float64) float64 {
	r2 = max(r2, debyeHueckelMin2)
	bits := math.Float64bits(r2)
	t := r2 - math.Float64frombits(bits&^segmentMask)
	c := &s.segment[(bits>>segmentShift-firstSegment)%debyeHueckelSegments]
	return (c[0] + float64(t*c[1])) + float64(float64(t*t)*(c[2]+float64(t*c[3])))
}
