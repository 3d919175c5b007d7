package cgidp

import "math"

const (
	scalingFrom     = 6  // smallest separation that is fitted
	scalingResidues = 12 // shortest chain that is fitted
	maxScaling      = 1.2
	maxMisfit       = 0.1 // of the mean distance, above which the law does not hold
)

// scaling is the law R(s) = r0 s^nu for distances within a chain.
type scaling struct {
	nu, r0 float64 // r0 in nm
	misfit float64 // root mean square deviation from the law over the mean distance
}

// fitScaling fits distances (nm) by separation, unweighted. With too short a
// chain the numbers are NaN.
func fitScaling(rms []float64) scaling {
	if len(rms) < scalingResidues {
		return scaling{math.NaN(), math.NaN(), math.NaN()}
	}
	nu := goldenSection(0, maxScaling, func(nu float64) float64 {
		_, squares := prefactor(rms, nu)
		return squares
	})
	r0, squares := prefactor(rms, nu)
	fitted := rms[scalingFrom:]
	mean := sum(fitted) / float64(len(fitted))
	return scaling{nu, r0, math.Sqrt(squares/float64(len(fitted))) / mean}
}

// at is the distance in nm that the law gives for a separation.
func (s scaling) at(separation int) float64 {
	return s.r0 * math.Pow(float64(separation), s.nu)
}

// prefactor returns the best r0 for a given nu, and the squares left over.
func prefactor(rms []float64, nu float64) (r0, squares float64) {
	var xy, xx float64
	for s := scalingFrom; s < len(rms); s++ {
		x := math.Pow(float64(s), nu)
		xy += x * rms[s]
		xx += x * x
	}
	r0 = xy / xx
	for s := scalingFrom; s < len(rms); s++ {
		d := rms[s] - r0*math.Pow(float64(s), nu)
		squares += d * d
	}
	return r0, squares
}

// goldenSection finds the minimum of a function that has one.
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
