package md

import "math"

const (
	scalingFrom     = 6  // minimum separation in the fit
	scalingResidues = 12 // minimum chain length for a fit
	maxScaling      = 1.2
	endOfRange      = 1e-5 // an exponent this close to an end of the range is undetermined
)

// MaxMisfit is the misfit above which distances do not follow a power law.
const MaxMisfit = 0.1

// Scaling is the power law R(s) = R0 s^Nu for distances within a chain.
type Scaling struct {
	Nu     float64 // NaN if the best fit is at an end of the search range
	R0     float64 // nm
	Misfit float64 // root mean square deviation from the law, relative to the mean distance
}

// FitScaling fits distances in nm, indexed by separation as returned by [PairSums.RMS].
// Separations above 5 have equal weights. For chains of fewer than 12 residues, all
// fields are NaN; if the best exponent is at an end of the range, Nu and R0 are NaN.
func FitScaling(rms []float64) Scaling {
	if len(rms) < scalingResidues {
		return Scaling{math.NaN(), math.NaN(), math.NaN()}
	}
	nu := goldenSection(0, maxScaling, func(nu float64) float64 {
		_, squares := prefactor(rms, nu)
		return squares
	})
	r0, squares := prefactor(rms, nu)
	fitted := rms[scalingFrom:]
	misfit := math.Sqrt(squares/float64(len(fitted))) / (sum(fitted) / float64(len(fitted)))
	if nu < endOfRange || nu > maxScaling-endOfRange {
		return Scaling{math.NaN(), math.NaN(), misfit}
	}
	return Scaling{nu, r0, misfit}
}

// At returns the distance in nm predicted for a separation.
func (s Scaling) At(separation int) float64 {
	return s.R0 * power(float64(separation), s.Nu)
}

// prefactor returns the best R0 for a given nu, and the sum of squared deviations.
func prefactor(rms []float64, nu float64) (r0, squares float64) {
	var xy, xx float64
	for s := scalingFrom; s < len(rms); s++ {
		x := power(float64(s), nu)
		xy += x * rms[s]
		xx += x * x
	}
	r0 = xy / xx
	for s := scalingFrom; s < len(rms); s++ {
		d := rms[s] - r0*power(float64(s), nu)
		squares += d * d
	}
	return r0, squares
}

// goldenSection returns the position of the minimum of a unimodal function.
func goldenSection(low, high float64, f func(float64) float64) float64 {
	const ratio = 1 / math.Phi
	a, b := high-ratio*(high-low), low+ratio*(high-low)
	fa, fb := f(a), f(b)
	for high-low > 1e-7 {
		if fa < fb {
			high, b, fb = b, a, fa
			a = high - ratio*(high-low)
			fa = f(a)
			continue
		}
		low, a, fa = a, b, fb
		b = low + ratio*(high-low)
		fb = f(b)
	}
	return (low + high) / 2
}
