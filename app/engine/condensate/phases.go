package condensate

import (
	"fmt"
	"math"
	"slices"

	"molrun/app/engine/md"
)

// Phases are what a slab and its surroundings show.
type Phases struct {
	// Separated says that there are two phases; if not, Reason says why in words for a
	// biologist, and nothing else is known.
	Separated bool
	Reason    string

	// Undecided says that the profile does not decide whether there are two phases: what is dense
	// has no plateau, or the errors are too large. If it is false and Separated, too, there is one phase.
	Undecided bool

	Lower, Upper Interface
	Components   []Coexistence

	inside, outside region
}

// Dense reports whether a height, in nm from the middle of the box, is within the dense phase,
// away from its interfaces.
func (f *Phases) Dense(z float64) bool { return f.inside.holds(z) }

// Dilute reports whether a height is within the dilute phase.
func (f *Phases) Dilute(z float64) bool { return f.outside.lacks(z) }

// Coexistence is how a component is shared out between the phases. Unknown numbers are NaN.
type Coexistence struct {
	Dense, Dilute md.Estimate // mM

	// Bound says that too few chains were seen outside to determine their concentration:
	// Dilute.Mean is what it is below with a probability of about 95 %.
	Bound bool

	// Transfer is the free energy of a chain that goes from the dilute phase into the dense one,
	// in kT, with its standard error. It is an upper bound if Bound.
	Transfer, TransferSE float64
}

// At these multiples of an interface's width from its middle, the dense phase ends inside and
// the dilute phase begins outside. There, 4 % and 0.05 % of the step are left: concentrations
// differ by orders of magnitude, and the dense phase is thin.
const (
	denseBefore  = 0.75
	diluteBehind = 1.75
)

// minPlateau is the least thickness of a phase in nm.
const minPlateau = 2

// LeastThickness is how thick in nm a slab has to be for a plateau between interfaces of that width.
func LeastThickness(width float64) float64 { return minPlateau + 2*denseBefore*width }

// What Reason begins with where a slab has no plateau.
const (
	tooThin = "slab thinner than its interfaces"
	tooFull = "the dense phase and its interfaces fill the box"
)

// Evaluate finds the phases in the profiles of replicas of one system. The errors need 16
// frames or more.
func Evaluate(replicas []*Profile) Phases {
	p := replicas[0]
	all := Mean(replicas...)
	mass := make([]float64, p.bins)
	for i, layer := range all {
		for c, amount := range layer.MilliMol {
			mass[i] += amount * p.masses[c]
		}
	}
	step, half := p.length/float64(p.bins), p.bins/2
	below := make([]float64, half)
	for i := range below {
		below[i] = mass[half-1-i]
	}
	lower, upper := fitCurve(step, below), fitCurve(step, mass[p.bins-half:])
	f := Phases{
		Lower: Interface{-lower.at, lower.length * widths},
		Upper: Interface{upper.at, upper.length * widths},
	}
	inside := region{f.Lower.Z + denseBefore*f.Lower.Width, f.Upper.Z - denseBefore*f.Upper.Width}
	outside := region{f.Lower.Z - diluteBehind*f.Lower.Width, f.Upper.Z + diluteBehind*f.Upper.Width}
	f.inside, f.outside = inside, outside
	unclear := ""
	switch {
	case lower.inner <= lower.outer || upper.inner <= upper.outer:
		unclear = "no interfaces were found on both sides of the middle: simulate longer, or use more chains"
	case inside.to-inside.from < minPlateau:
		unclear = fmt.Sprintf(tooThin+": %.1f nm thick, with interfaces %.1f and %.1f nm wide; use more chains or a smaller cross-section",
			max(0, f.Upper.Z-f.Lower.Z), f.Lower.Width, f.Upper.Width)
	case p.length-(outside.to-outside.from) < minPlateau:
		unclear = tooFull + ", so there is no dilute phase beside it; use a longer box"
	}
	second := make([]float64, len(p.masses)+1)
	second[len(p.masses)] = 1
	if unclear != "" {
		dense := core(mass)
		at := func(z float64) int { return min(int((z/p.length+0.5)*float64(p.bins)), p.bins-1) }
		return withoutPhases(
			pool(replicas, second, func(z float64) bool { return dense[at(z)] }),
			pool(replicas, second, func(z float64) bool { return !dense[at(z)] }), unclear)
	}
	for c := range p.masses {
		f.Components = append(f.Components, coexistence(replicas, c, inside, outside))
	}
	dense, dilute := pool(replicas, second, inside.holds), pool(replicas, second, outside.lacks)
	if f.Separated = dense.Mean-dilute.Mean > 3*math.Hypot(dense.SE, dilute.SE); !f.Separated {
		return withoutPhases(dense, dilute, "the run is too short to tell")
	}
	return f
}

// withoutPhases decides on a profile without two phases, by the concentration of one half of the
// chains in the region where the other half is dense, and elsewhere. There is one phase if these
// differ by at most a factor of two, since attracting chains are never uniformly distributed.
// Otherwise the result is undecided; unclear says why.
func withoutPhases(dense, dilute md.Estimate, unclear string) Phases {
	se := math.Hypot(dense.SE, dilute.SE)
	found := fmt.Sprintf("where one half of the chains is dense, the other half has %.3g±%.2g mg/mL, and elsewhere %.3g±%.2g mg/mL",
		dense.Mean/1000, dense.SE/1000, dilute.Mean/1000, dilute.SE/1000)
	switch {
	case math.IsNaN(se):
		return Phases{Undecided: true, Reason: "too few samples for errors, which take 16; simulate longer"}
	case dense.Mean-dilute.Mean+3*se < dilute.Mean:
		return Phases{Reason: "the concentration is about the same all along the box (" + found + "): the chains do not condense under these conditions"}
	}
	return Phases{Undecided: true, Reason: unclear + " (" + found + ")"}
}

// core are the layers that are denser than half way between the thinnest and the densest.
func core(mass []float64) []bool {
	mass = smooth(mass)
	middle := (slices.Min(mass) + slices.Max(mass)) / 2
	dense := make([]bool, len(mass))
	for i, m := range mass {
		dense[i] = m > middle
	}
	return dense
}

// region is a part of the box, in nm from its middle.
type region struct{ from, to float64 }

func (r region) holds(z float64) bool { return r.from <= z && z <= r.to }
func (r region) lacks(z float64) bool { return z < r.from || z > r.to }

// pool returns the mean concentration in a part of the box, in mM: the sum of the
// components', each by its weight.
func pool(replicas []*Profile, weights []float64, in func(z float64) bool) md.Estimate {
	var all []md.Series
	for _, p := range replicas {
		s := md.NewSeries(int64(len(p.blocks)))
		for k, block := range p.blocks {
			frames := p.size
			if k == len(p.blocks)-1 && p.filled < p.size {
				if len(p.blocks) > 1 {
					break // an unfinished block counts less than the others
				}
				frames = p.filled
			}
			sum, layers := 0.0, 0
			for i := range p.bins {
				if z := (float64(i)+0.5)/float64(p.bins)*p.length - p.length/2; in(z) {
					layers++
					for c, weight := range weights {
						sum += weight * block[c*p.bins+i]
					}
				}
			}
			s.Add(sum / float64(frames) / (float64(layers) * p.layerVolume()) * MilliMol)
		}
		all = append(all, s)
	}
	return md.Pool(all)
}

// LeastLooks is how many independent looks at the dilute phase a replica is taken for where
// the numbers do not decide it: as many as an error needs.
const LeastLooks = 16

func coexistence(replicas []*Profile, component int, inside, outside region) Coexistence {
	p := replicas[0]
	weights := make([]float64, len(p.masses))
	weights[component] = 1
	c := Coexistence{Dense: pool(replicas, weights, inside.holds), Dilute: pool(replicas, weights, outside.lacks)}
	one := MilliMol / (p.area * (p.length - (outside.to - outside.from))) // the concentration of one chain
	looks := c.Dilute.Independent
	if !(looks >= LeastLooks) {
		looks = float64(LeastLooks * len(replicas))
	}
	// Less than a few chains in all looks are ends of chains that hang out of the dense phase.
	if !(c.Dilute.SE < c.Dilute.Mean/2) || c.Dilute.Mean < 3/looks*one {
		c.Bound = true
		more := 2 * c.Dilute.SE
		if !(more > 0) {
			more = 0
		}
		// None in n looks is compatible with up to 3 in them (95 %, by Poisson's law).
		c.Dilute = md.Estimate{
			Mean: max(c.Dilute.Mean+more, 3/looks*one),
			SE:   math.NaN(), SD: math.NaN(), Independent: math.NaN(), Drift: math.NaN(),
		}
	}
	c.Transfer = math.Log(c.Dilute.Mean / c.Dense.Mean)
	c.TransferSE = math.Hypot(c.Dilute.SE/c.Dilute.Mean, c.Dense.SE/c.Dense.Mean)
	return c
}
