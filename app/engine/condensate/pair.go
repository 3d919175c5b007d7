package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// isPair reports whether there are two chains in a dilute solution, of which the virial
// coefficient and the dissociation constant can be determined.
func (y *system) isPair() bool { return y.Protocol == Dilute && y.mix.Chains() == 2 }

// nearby is half the shortest edge, beyond which two chains must not interact.
func (y *system) nearby() float64 { return min(y.Box.X, y.Box.Y, y.Box.Z) / 2 }

// nearness is 1 if two chains are nearby, else 0.
func (y *system) nearness(centres []md.Vec) float64 {
	if y.mix.Image(centres[0].Sub(centres[1])).Norm() < y.nearby() {
		return 1
	}
	return 0
}

// figure is a number with its standard error. Unknown numbers are NaN.
type figure struct{ value, se float64 }

// virial is the second virial coefficient in nm³ from the fraction of time that two chains
// are nearby: -1/2 of the excess over two non-interacting chains, divided by their
// concentration elsewhere.
func (y *system) virial(near md.Estimate) figure {
	r := y.nearby()
	ball, box := 4*math.Pi/3*r*r*r, y.Box.X*y.Box.Y*y.Box.Z
	outside := 1 - near.Mean
	if !(outside > 0) {
		return figure{math.NaN(), math.NaN()}
	}
	excess := near.Mean/outside*(box-ball) - ball
	return figure{-excess / 2, (box - ball) / (outside * outside) * near.SE / 2}
}

// perMass is what a second virial coefficient of 1 nm³ is in mL mol/g²: over the masses of both chains.
func (y *system) perMass() float64 {
	first, second := y.mix.Chain(0).TotalMass(), y.mix.Chain(1).TotalMass()
	return 1e6 / MilliMol / (first * second)
}

// dissociation is the dissociation constant in mM of two chains in contact, from the
// fraction of time that they are: with two chains in the box there is one pair, and two
// equal chains make half as many pairs as two different ones.
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
