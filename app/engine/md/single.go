package md

import (
	"math"
	"math/bits"
)

// Pairs of a mixture are computed in single precision, eight at a time, which takes half
// the time of double precision. Two measures keep the forces accurate. First, positions
// are integer multiples of 2^-25 nm, so the only error of separations comes from rounding
// the positions, at most 1.5e-8 nm, wherever the beads are. Second, the forces on a bead
// within one domain are summed separately from its total force, which is in double
// precision. The root mean square error is below 1e-6 of the root mean square force
// (TestSinglePrecisionSuffices).

// positionUnit is the unit of positions, in nm. It is coarse enough for an int32 to hold
// distances of up to 64 nm.
const positionUnit = 1.0 / (1 << 25)

// maxGroupSpan is the maximum number of bonds between the first and last bead of a group. It
// keeps the separations of beads in two such groups that touch within the range of int32,
// since no bond reaches maxBond.
const maxGroupSpan = 56

// quad32 holds four beads in the layout of the inner loops of mixtures.
type quad32 struct {
	x, y, z    [quadSize]int32   // position in units of positionUnit, wraps around
	p, q       [quadSize]float32 // force parameters
	fx, fy, fz [quadSize]float32 // force, kJ/mol/nm divided by positionUnit
}

// toFine converts a coordinate from nm to units of positionUnit, wrapping around. It is
// exact up to 10^7 nm: adding the constant moves the unit to the last bit of a float64.
func toFine(v float64) int32 {
	const lastBitIsOne = 1.5 * (1 << 52)
	return int32(uint32(math.Float64bits(float64(v*(1/positionUnit)) + lastBitIsOne)))
}

// fineVec is a position in units of positionUnit. Each coordinate wraps around.
type fineVec [3]int32

func (v Vec) fine() fineVec { return fineVec{toFine(v.X), toFine(v.Y), toFine(v.Z)} }

// force returns the force on the bead in a lane, in kJ/mol/nm.
func (q *quad32) force(lane int) Vec {
	return Vec{positionUnit * float64(q.fx[lane]), positionUnit * float64(q.fy[lane]), positionUnit * float64(q.fz[lane])}
}

// debyeHueckelTable32 is a debyeHueckelTable in single precision, with the same segments.
type debyeHueckelTable32 struct {
	segment [debyeHueckelSegments][4]float32
}

func newDebyeHueckelTable32(from *debyeHueckelTable) *debyeHueckelTable32 {
	table := new(debyeHueckelTable32)
	for k, c := range from.segment {
		for power := range c {
			table.segment[k][power] = float32(c[power])
		}
	}
	return table
}

// The constants of debyeHueckelTable for r² as a float32.
const (
	segmentShift32 = 23 - octaveBits
	segmentMask32  = 1<<segmentShift32 - 1
	firstSegment32 = (127 - 12) << octaveBits
)

// forceOverR returns F/r for strength 1 and r² below the square of chargeCutoff.
func (s *debyeHueckelTable32) forceOverR(r2 float32) float32 {
	r2 = max(r2, debyeHueckelMin2)
	bits := math.Float32bits(r2)
	t := r2 - math.Float32frombits(bits&^segmentMask32)
	c := &s.segment[(bits>>segmentShift32-firstSegment32)%debyeHueckelSegments]
	return (c[0] + float32(t*c[1])) + float32(float32(t*t)*(c[2]+float32(t*c[3])))
}

// The pair loops below are portable Go. The assembly loops give bitwise equal results; a
// test compares them.

// portableAshbaughHatch32 adds Ashbaugh–Hatch forces.
func portableAshbaughHatch32(quads []quad32, list *pairList) {
	list.interact32(quads, func(a, b *quad32, i, j int, r2 float32) float32 {
		if r2 < ashbaughHatchCutoff*ashbaughHatchCutoff {
			return ashbaughHatchForce(r2, a.p[i]+b.p[j], a.q[i]+b.q[j])
		}
		return 0
	})
}

// portableDebyeHueckel32 adds Debye–Hückel forces.
func portableDebyeHueckel32(quads []quad32, list *pairList, table *debyeHueckelTable32) {
	list.interact32(quads, func(a, b *quad32, i, j int, r2 float32) float32 {
		if r2 < chargeCutoff*chargeCutoff {
			return float32(a.p[i]*b.q[j]) * table.forceOverR(r2)
		}
		return 0
	})
}

// interact32 adds the forces of all pairs. The function w returns the force of a pair
// divided by its distance, given the quads, the lanes and the squared distance.
func (l *pairList) interact32(quads []quad32, w func(a, b *quad32, i, j int, r2 float32) float32) {
	for k := range l.rows() {
		a := &quads[k]
		var lost [quadSize]lanes32
		for _, t := range l.tiles[l.start[k]:l.start[k+1]] {
			b := &quads[t.quad]
			var gained [quadSize]lanes32
			for pairs := t.pairs; pairs != 0; pairs &= pairs - 1 {
				pair := bits.TrailingZeros16(pairs)
				i, j := pair/quadSize, pair%quadSize
				x, y, z, r2 := a.apart(b, i, j)
				f := w(a, b, i, j, r2)
				g := &gained[i]
				g.x[j], g.y[j], g.z[j] = float32(x*f), float32(y*f), float32(z*f)
				lost[i].x[j] += g.x[j]
				lost[i].y[j] += g.y[j]
				lost[i].z[j] += g.z[j]
			}
			for j := range quadSize {
				b.fx[j] += (gained[0].x[j] + gained[2].x[j]) + (gained[1].x[j] + gained[3].x[j])
				b.fy[j] += (gained[0].y[j] + gained[2].y[j]) + (gained[1].y[j] + gained[3].y[j])
				b.fz[j] += (gained[0].z[j] + gained[2].z[j]) + (gained[1].z[j] + gained[3].z[j])
			}
		}
		for i := range lost {
			a.fx[i] -= across32(&lost[i].x)
			a.fy[i] -= across32(&lost[i].y)
			a.fz[i] -= across32(&lost[i].z)
		}
	}
}

// apart returns the separation of two beads in units of positionUnit, and their squared
// distance in nm².
func (q *quad32) apart(b *quad32, i, j int) (x, y, z, r2 float32) {
	x, y, z = float32(b.x[j]-q.x[i]), float32(b.y[j]-q.y[i]), float32(b.z[j]-q.z[i])
	return x, y, z, ((float32(x*x) + float32(y*y)) + float32(z*z)) * (positionUnit * positionUnit)
}

// portablePrune copies a list to another, omitting the tiles in which no pair of lanes is
// within a distance, given as its square.
func portablePrune(quads []quad32, list, to *pairList, reach2 float32) {
	to.start = append(to.start[:0], 0)
	to.tiles = to.tiles[:0]
	for k := range list.rows() {
		for _, t := range list.tiles[list.start[k]:list.start[k+1]] {
			if quads[k].touches(&quads[t.quad], reach2) {
				to.tiles = append(to.tiles, t)
			}
		}
		to.start = append(to.start, int32(len(to.tiles)))
	}
}

// touches reports whether two quads have lanes within a distance, given as its square.
func (q *quad32) touches(b *quad32, reach2 float32) bool {
	for i := range quadSize {
		for j := range quadSize {
			if _, _, _, r2 := q.apart(b, i, j); r2 < reach2 {
				return true
			}
		}
	}
	return false
}

// lanes32 holds force sums over the partners in each lane.
type lanes32 struct{ x, y, z [quadSize]float32 }

func across32(v *[quadSize]float32) float32 { return (v[0] + v[1]) + (v[2] + v[3]) }
