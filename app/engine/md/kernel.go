package md

import "math/bits"

// The pair loops below are portable Go. The assembly loops give bitwise equal results; a
// test compares them. The force on a bead is the sum over its partners of lower index, in
// order, minus a sum over those of higher index, which is accumulated per lane first and
// then across the lanes.

// lanes holds force sums over the partners in each lane.
type lanes struct{ x, y, z [quadSize]float64 }

func (s *lanes) total() Vec { return Vec{across(&s.x), across(&s.y), across(&s.z)} }

func across(v *[quadSize]float64) float64 { return (v[0] + v[2]) + (v[1] + v[3]) }

// portableAshbaughHatch adds Ashbaugh–Hatch forces.
func portableAshbaughHatch(quads []quad, list *pairList) {
	list.interact(quads, func(a, b *quad, i, j int, r2 float64) float64 {
		if r2 < ashbaughHatchCutoff*ashbaughHatchCutoff {
			return ashbaughHatchForce(r2, a.p[i]+b.p[j], a.q[i]+b.q[j])
		}
		return 0
	})
}

// portableDebyeHueckel adds Debye–Hückel forces.
func portableDebyeHueckel(quads []quad, list *pairList, table *debyeHueckelTable) {
	list.interact(quads, func(a, b *quad, i, j int, r2 float64) float64 {
		if r2 < chargeCutoff*chargeCutoff {
			return float64(a.p[i]*b.q[j]) * table.forceOverR(r2)
		}
		return 0
	})
}

// interact adds the forces of all pairs. The function w returns the force of a pair
// divided by its distance, given the quads, the lanes and the squared distance.
func (l *pairList) interact(quads []quad, w func(a, b *quad, i, j int, r2 float64) float64) {
	for k := range l.rows() {
		a := &quads[k]
		var sums [quadSize]lanes
		for _, t := range l.tiles[l.start[k]:l.start[k+1]] {
			b := &quads[t.quad]
			for pairs := t.pairs; pairs != 0; pairs &= pairs - 1 {
				pair := bits.TrailingZeros16(pairs)
				i, j := pair/quadSize, pair%quadSize
				d := b.position(j).Sub(a.position(i))
				r2 := float64(d.X*d.X) + float64(d.Y*d.Y) + float64(d.Z*d.Z)
				if f := w(a, b, i, j, r2); f != 0 {
					b.gain(j, &sums[i], d, f)
				}
			}
		}
		for i := range sums {
			a.setForce(i, a.force(i).Sub(sums[i].total()))
		}
	}
}

// gain adds w times the separation d to the force on the bead in a lane and to the sum to
// be subtracted from its partner.
func (q *quad) gain(lane int, lost *lanes, d Vec, w float64) {
	x, y, z := float64(d.X*w), float64(d.Y*w), float64(d.Z*w)
	lost.x[lane] += x
	lost.y[lane] += y
	lost.z[lane] += z
	q.fx[lane] += x
	q.fy[lane] += y
	q.fz[lane] += z
}
