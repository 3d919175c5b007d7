package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// isPair reports whether the system is two chains in dilute solution, for which the
// second virial coefficient and the dissociation constant can be determined.
func (y *system) isPair() bool { return y.Protocol == Dilute && y.mix.Chains() == 2 }

// halfBox returns half the shortest box edge. The analysis assumes that two chains
// farther apart do not interact.
func (y *system) halfBox() float64 { return min(y.Box.X, y.Box.Y, y.Box.Z) / 2 }

// isNearby returns 1 if two chains are nearby, otherwise 0.
func (y *system) isNearby(centres []md.Vec) float64 {
	if y.mix.MinimumImage(centres[0].Sub(centres[1])).Norm() < y.halfBox() {
		return 1
	}
	return 0
}

// figure is a value with its standard error; NaN means unknown.
type figure struct{ value, se float64 }

// virial returns the second virial coefficient in nm³ from the fraction of time that two
// chains are nearby: -1/2 of the excess over non-interacting chains, divided by the
// concentration elsewhere.
func (y *system) virial(near md.Estimate) figure {
	r := y.halfBox()
	ball, box := 4*math.Pi/3*r*r*r, y.Box.X*y.Box.Y*y.Box.Z
	outside := 1 - near.Mean
	if !(outside > 0) {
		return figure{math.NaN(), math.NaN()}
	}
	excess := near.Mean/outside*(box-ball) - ball
	return figure{-excess / 2, (box - ball) / (outside * outside) * near.SE / 2}
}

// perMass returns the factor from nm³ to mL mol/g², which divides by the masses of both
// chains.
func (y *system) perMass() float64 {
	first, second := y.mix.Chain(0).TotalMass(), y.mix.Chain(1).TotalMass()
	return 1e6 / MilliMol / (first * second)
}

// dissociation returns the dissociation constant in mM from the fraction of time that two
// chains are in contact. Two chains in the box are one pair; two equal chains form half
// as many pairs as two different ones.
func (y *system) dissociation(bound md.Estimate) figure {
	p := bound.Mean
	if !(p > 0 && p < 1) {
		return figure{math.NaN(), math.NaN()}
	}
	one := MilliMol / (y.Box.X * y.Box.Y * y.Box.Z)
	if len(y.Components) == 1 {
		one *= 2
	}
	return figure{(1 - p) / p * one, one * bound.SE / (p * p)}
}
