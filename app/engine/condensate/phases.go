package condensate

import (
	"fmt"
	"math"
	"slices"

	"molrun/app/engine/md"
)

// Phases are the phases of a slab simulation.
type Phases struct {
	// Separated reports whether there are two phases. If not, Reason says what the
	// profile shows instead, and the fields below Undecided are not set.
	Separated bool
	Reason    string

	// Undecided reports whether the profile leaves open if there are two phases, because
	// the dense region has no plateau, the errors are too large, or the profile still
	// changes. If both Undecided and Separated are false, the profile is flat.
	Undecided bool

	Lower, Upper Interface
	Components   []Coexistence

	inside, outside region
}

// Dense reports whether z, in nm from the box center, is within the dense phase, away
// from its interfaces.
func (f *Phases) Dense(z float64) bool { return f.inside.contains(z) }

// Dilute reports whether z is within the dilute phase.
func (f *Phases) Dilute(z float64) bool { return f.outside.excludes(z) }

// Coexistence is the partitioning of a component between the phases. Unknown values are
// NaN.
type Coexistence struct {
	Dense, Dilute md.Estimate // mM

	// Bound means that too few chains were observed outside the slab to determine the
	// dilute concentration. Dilute.Mean is then an upper bound with a confidence of about
	// 95 %.
	Bound bool

	// Transfer is the free energy of transfer of a chain from the dilute to the dense
	// phase, in kT, with its standard error. If Bound, it is an upper bound.
	Transfer, TransferSE float64
}

// The dense phase ends denseMargin interface widths inside the middle of the interface,
// and the dilute phase begins diluteMargin widths outside it. There, 4 % and 0.05 % of
// the concentration step remain. The margins differ because the concentrations differ by
// orders of magnitude and the dense phase is thin.
const (
	denseMargin  = 0.75
	diluteMargin = 1.75
)

// minPlateau is the minimum thickness of a phase in nm.
const minPlateau = 2

// regions returns the dense phase between two interfaces, and the slab, outside which the
// dilute phase begins.
func regions(lower, upper Interface) (dense, slab region) {
	return region{lower.Z + denseMargin*lower.Width, upper.Z - denseMargin*upper.Width},
		region{lower.Z - diluteMargin*lower.Width, upper.Z + diluteMargin*upper.Width}
}

// withoutPlateau returns why one of the phases is too thin to have a plateau, or "" if
// both have one. The interfaces can be expected or fitted ones.
func withoutPlateau(lower, upper Interface, length float64) string {
	dense, slab := regions(lower, upper)
	switch {
	case dense.to-dense.from < minPlateau:
		return fmt.Sprintf("slab thinner than its interfaces: %.1f nm thick, with interfaces %.1f and %.1f nm wide; use more chains or a smaller cross-section",
			max(0, upper.Z-lower.Z), lower.Width, upper.Width)
	case length-(slab.to-slab.from) < minPlateau:
		return "the dense phase and its interfaces fill the box, which leaves no dilute phase; use a longer box"
	}
	return ""
}

// Evaluate determines the phases from the profiles of the replicas of one system. Errors
// need at least 16 frames.
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
		dense := denseLayers(mass)
		at := func(z float64) int { return min(int((z/p.length+0.5)*float64(p.bins)), p.bins-1) }
		return withoutPhases(
			pool(replicas, second, func(z float64) bool { return dense[at(z)] }),
			pool(replicas, second, func(z float64) bool { return !dense[at(z)] }), unclear)
	}
	for c := range p.masses {
		f.Components = append(f.Components, coexistence(replicas, c, inside, outside))
	}
	dense, dilute := pool(replicas, second, inside.contains), pool(replicas, second, outside.excludes)
	if f.Separated = dense.Mean-dilute.Mean > 3*math.Hypot(dense.SE, dilute.SE); !f.Separated {
		return withoutPhases(dense, dilute, "the run is too short to decide")
	}
	return f
}

// withoutPhases evaluates a profile without two phases. It compares the concentration of
// one half of the chains in the region where the other half is dense with that elsewhere.
// There is one phase if these differ by at most a factor of two, since attracting chains
// are never uniformly distributed, and neither changes over the run. Otherwise the result
// is undecided, and unclear says why.
func withoutPhases(dense, dilute md.Estimate, unclear string) Phases {
	se := math.Hypot(dense.SE, dilute.SE)
	found := fmt.Sprintf("the concentration of one half of the chains is %.3g±%.2g mg/mL where the other half is dense, and %.3g±%.2g mg/mL elsewhere",
		dense.Mean/1000, dense.SE/1000, dilute.Mean/1000, dilute.SE/1000)
	switch {
	case math.IsNaN(se):
		return Phases{Undecided: true, Reason: "too few samples for error estimates, which need 16; simulate longer"}
	case dense.Mean-dilute.Mean+3*se >= dilute.Mean:
	case !dense.Steady(AssumedSamples) || !dilute.Steady(AssumedSamples):
		return Phases{Undecided: true, Reason: "the profile still changes (" + found + "): simulate longer"}
	default:
		return Phases{Reason: "the concentration is about the same all along the box (" + found + ")"}
	}
	return Phases{Undecided: true, Reason: unclear + " (" + found + ")"}
}

// denseLayers marks the layers denser than the mean of the lowest and highest density.
func denseLayers(mass []float64) []bool {
	mass = smooth(mass)
	middle := (slices.Min(mass) + slices.Max(mass)) / 2
	dense := make([]bool, len(mass))
	for i, m := range mass {
		dense[i] = m > middle
	}
	return dense
}

// region is a range of z, in nm from the box center.
type region struct{ from, to float64 }

func (r region) contains(z float64) bool { return r.from <= z && z <= r.to }
func (r region) excludes(z float64) bool { return z < r.from || z > r.to }

// pool returns the mean concentration in part of the box, in mM, as the weighted sum over
// components.
func pool(replicas []*Profile, weights []float64, in func(z float64) bool) md.Estimate {
	var all []md.Series
	size := int64(1)
	for _, p := range replicas {
		s := md.NewSeries(int64(len(p.blocks)))
		for k, block := range p.blocks {
			frames := p.size
			if k == len(p.blocks)-1 && p.filled < p.size {
				if len(p.blocks) > 1 {
					break // an incomplete block would have too much weight
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
	return toSamples(md.Pool(all), float64(size))
}

// toSamples converts an estimate over block means to one over samples, given the number
// of samples per block. An autocorrelation time below one block is unknown.
func toSamples(e md.Estimate, size float64) md.Estimate {
	if e.Time < 1 {
		e.Time = math.NaN()
	}
	e.Time, e.Shortest = e.Time*size, e.Shortest*size
	return e
}

// AssumedSamples is the number of independent observations of the dilute phase assumed per
// replica if it cannot be determined from the data. It is the minimum for an error
// estimate.
const AssumedSamples = 16

func coexistence(replicas []*Profile, component int, inside, outside region) Coexistence {
	p := replicas[0]
	weights := make([]float64, len(p.masses))
	weights[component] = 1
	c := Coexistence{Dense: pool(replicas, weights, inside.contains), Dilute: pool(replicas, weights, outside.excludes)}
	one := MilliMol / (p.area * (p.length - (outside.to - outside.from))) // concentration of one chain
	looks := c.Dilute.Independent
	if !(looks >= AssumedSamples) || c.Dilute.SD == 0 {
		looks = float64(AssumedSamples * len(replicas))
	}
	// A mean below a few chains over all observations comes from chain ends that protrude
	// from the dense phase.
	if !(c.Dilute.SE < c.Dilute.Mean/2) || c.Dilute.Mean < 3/looks*one {
		c.Bound = true
		more := 2 * c.Dilute.SE
		if !(more > 0) {
			more = 0
		}
		// If n observations find no chain, the expected number of chains is at most 3 (95
		// %, Poisson distribution).
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

// widened returns c with the errors of a run that is not converged.
func (c Coexistence) widened() Coexistence {
	c.Dense, c.Dilute = c.Dense.Widened(), c.Dilute.Widened()
	return c.withTransfer()
}
