package condensate

import (
	"fmt"
	"math"
	"slices"

	"molrun/app/engine/md"
)

// Phases are what a slab and its surroundings show.
type Phases struct {
	// Separated says that there are two phases; if not, Reason says what the profile shows
	// instead, and nothing else is known.
	Separated bool
	Reason    string

	// Undecided says that the profile does not decide whether there are two phases: what is dense
	// has no plateau, the errors are too large, or the profile still changes. If it is false and
	// Separated, too, the profile is flat.
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

// regions are the dense phase between two interfaces, and the slab, outside of which the dilute phase begins.
func regions(lower, upper Interface) (dense, slab region) {
	return region{lower.Z + denseBefore*lower.Width, upper.Z - denseBefore*upper.Width},
		region{lower.Z - diluteBehind*lower.Width, upper.Z + diluteBehind*upper.Width}
}

// withoutPlateau says why one of the phases on the sides of two interfaces is too thin to have a
// concentration; "" if both have one. It holds for interfaces that are expected and for those found.
func withoutPlateau(lower, upper Interface, length float64) string {
	dense, slab := regions(lower, upper)
	switch {
	case dense.to-dense.from < minPlateau:
		return fmt.Sprintf("slab thinner than its interfaces: %.1f nm thick, with interfaces %.1f and %.1f nm wide; use more chains or a smaller cross-section",
			max(0, upper.Z-lower.Z), lower.Width, upper.Width)
	case length-(slab.to-slab.from) < minPlateau:
		return "the dense phase and its interfaces fill the box, so there is no dilute phase beside it; use a longer box"
	}
	return ""
}

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
	inside, outside := regions(f.Lower, f.Upper)
	f.inside, f.outside = inside, outside
	unclear := withoutPlateau(f.Lower, f.Upper, p.length)
	if lower.inner <= lower.outer || upper.inner <= upper.outer {
		unclear = "no interfaces were found on both sides of the middle: simulate longer, or use more chains"
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
// differ by at most a factor of two, since attracting chains are never uniformly distributed, and
// neither changes over the run. Otherwise the result is undecided; unclear says why.
func withoutPhases(dense, dilute md.Estimate, unclear string) Phases {
	se := math.Hypot(dense.SE, dilute.SE)
	found := fmt.Sprintf("where one half of the chains is dense, the other half has %.3g±%.2g mg/mL, and elsewhere %.3g±%.2g mg/mL",
		dense.Mean/1000, dense.SE/1000, dilute.Mean/1000, dilute.SE/1000)
	switch {
	case math.IsNaN(se):
		return Phases{Undecided: true, Reason: "too few samples for errors, which take 16; simulate longer"}
	case dense.Mean-dilute.Mean+3*se >= dilute.Mean:
	case !dense.Steady(LeastLooks) || !dilute.Steady(LeastLooks):
		return Phases{Undecided: true, Reason: "the profile still changes (" + found + "): simulate longer"}
	default:
		return Phases{Reason: "the concentration is about the same all along the box (" + found + ")"}
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
	size := int64(1)
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
		all, size = append(all, s), max(size, p.size)
	}
	return ofBlocks(md.Pool(all), float64(size))
}

// ofBlocks takes an estimate of a mean from means of blocks of a number of samples. An
// autocorrelation time of less than a block is unknown.
func ofBlocks(e md.Estimate, size float64) md.Estimate {
	if e.Time < 1 {
		e.Time = math.NaN()
	}
	e.Time, e.Shortest = e.Time*size, e.Shortest*size
	return e
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
	if !(looks >= LeastLooks) || c.Dilute.SD == 0 {
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
			SE:   math.NaN(), SD: math.NaN(), Independent: math.NaN(), Time: math.NaN(), Drift: math.NaN(),
		}
	}
	return c.withTransfer()
}

func (c Coexistence) withTransfer() Coexistence {
	c.Transfer = math.Log(c.Dilute.Mean / c.Dense.Mean)
	c.TransferSE = math.Hypot(c.Dilute.SE/c.Dilute.Mean, c.Dense.SE/c.Dense.Mean)
	return c
}

// widened is the coexistence in a run that is not converged.
func (c Coexistence) widened() Coexistence {
	c.Dense, c.Dilute = c.Dense.Widened(), c.Dilute.Widened()
	return c.withTransfer()
}
