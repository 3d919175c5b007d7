package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// centres returns the center of mass of each chain, wrapped into a box around the origin,
// after shifting all chains along z.
func (y *system) centres(x []md.Vec, moved float64) []md.Vec {
	all := make([]md.Vec, y.mix.Chains())
	for k := range all {
		c := y.mix.Chain(k).Centre(md.PartOf(y.mix, x, k))
		all[k] = y.inBox(md.Vec{X: c.X, Y: c.Y, Z: c.Z + moved})
	}
	return all
}

// inBox wraps a position into the box and centers the box on the origin.
func (y *system) inBox(v md.Vec) md.Vec {
	in := func(v, edge float64) float64 { return v - edge*math.Floor(v/edge) - edge/2 }
	return md.Vec{X: in(v.X, y.Box.X), Y: in(v.Y, y.Box.Y), Z: in(v.Z, y.Box.Z)}
}

// whole returns the positions with every chain in one piece and its center in the box.
func (y *system) whole(x []md.Vec, centres []md.Vec) []md.Vec {
	all := make([]md.Vec, len(x))
	for k := range centres {
		from, to := y.mix.Span(k)
		by := centres[k].Sub(y.mix.Chain(k).Centre(x[from:to]))
		for i := from; i < to; i++ {
			all[i] = x[i].AddScaled(1, by)
		}
	}
	return all
}
