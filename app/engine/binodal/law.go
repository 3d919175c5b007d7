package binodal

import (
	"math"

	"molrun/app/engine/md"
)

// beta is the order-parameter critical exponent of the 3D Ising universality class, to
// which liquid mixtures belong.
const beta = 0.325

// Law is a binodal near its critical point, in K and mg/mL:
//
//	dense − dilute       = Width (1 − T/Tc)^beta
//	(dense + dilute) / 2 = Rhoc + Slope (Tc − T)
//
// The second line is the law of rectilinear diameter.
type Law struct {
	Tc, Width   Concentration
	Rhoc, Slope Concentration

	// WidthChi2 and DiameterChi2 are the chi-squares of the two fits, each with Free
	// degrees of freedom.
	WidthChi2, DiameterChi2 float64
	Free                    int

	// WidthScale and DiameterScale multiply the errors derived from each fit where its
	// points deviate by more than chance; otherwise they are 1.
	WidthScale, DiameterScale float64

	// Deviations are the residuals of the points from the first equation, in standard
	// errors.
	Deviations []float64
}

// fitPoint is the part of a point that enters the fit.
type fitPoint struct {
	temperature   float64       // K
	dense, dilute Concentration // mg/mL
}

// difference returns dense - dilute with its standard error.
func (q fitPoint) difference() Concentration {
	return Concentration{q.dense.Mean - q.dilute.Mean, math.Hypot(q.dense.SE, q.dilute.SE)}
}

// diameter returns the mean of both phases with its standard error.
func (q fitPoint) diameter() Concentration {
	return Concentration{(q.dense.Mean + q.dilute.Mean) / 2, math.Hypot(q.dense.SE, q.dilute.SE) / 2}
}

// covariance returns the covariance of difference and diameter, which share the errors of
// both phases.
func (q fitPoint) covariance() float64 {
	return (q.dense.SE*q.dense.SE - q.dilute.SE*q.dilute.SE) / 2
}

// reducedWidth returns (1 - T/Tc)^beta and its derivative with respect to Tc; both are 0 at or
// above Tc.
func reducedWidth(temperature, tc float64) (value, slope float64) {
	t := 1 - temperature/tc
	if t <= 0 {
		return 0, 0
	}
	value = math.Pow(t, beta)
	return value, beta * value / t * temperature / (tc * tc)
}

// Phases returns the concentrations of both phases at a temperature below Tc, in mg/mL.
func (l *Law) Phases(temperature float64) (dense, dilute float64) {
	part, _ := reducedWidth(temperature, l.Tc.Mean)
	middle := l.diameterAt(temperature)
	return middle + l.Width.Mean*part/2, middle - l.Width.Mean*part/2
}

func (l *Law) diameterAt(temperature float64) float64 {
	return l.Rhoc.Mean + l.Slope.Mean*(l.Tc.Mean-temperature)
}

// fitLaw fits the law to points at three or more temperatures, with Tc above the given
// temperature. The two equations are fitted in sequence, each weighted by its own errors:
// in a joint fit, the small errors of the dilute phase would dominate far from Tc, where
// the law is least valid. If there is no best Tc, the law is nil and reason says why.
func fitLaw(pairs []fitPoint, above float64) (l *Law, reason string) {
	tc, reason := findTc(pairs, above)
	if reason != "" {
		return nil, reason
	}
	width, chi := bestWidth(pairs, tc)
	l = &Law{WidthChi2: chi, Free: len(pairs) - 2}
	l.Tc.Mean, l.Width.Mean = tc, width
	line := fitLine(pairs)
	l.Slope.Mean = line.slope
	l.Rhoc.Mean = line.at(tc)
	l.DiameterChi2 = line.chi2
	for _, q := range pairs {
		d := q.difference()
		part, _ := reducedWidth(q.temperature, tc)
		l.Deviations = append(l.Deviations, (d.Mean-width*part)/d.SE)
	}
	l.addErrors(pairs, line)
	return l, ""
}

// addErrors propagates the errors of the points to first order.
func (l *Law) addErrors(pairs []fitPoint, line line) {
	l.WidthScale, l.DiameterScale = birgeRatio(l.WidthChi2, l.Free), birgeRatio(l.DiameterChi2, l.Free)
	tc, width := l.Tc.Mean, l.Width.Mean
	// The inverse of the normal equations for width and Tc is the covariance matrix.
	var aa, at, tt float64
	for _, q := range pairs {
		part, slope := reducedWidth(q.temperature, tc)
		weight := 1 / square(q.difference().SE)
		aa += weight * part * part
		at += weight * part * width * slope
		tt += weight * square(width*slope)
	}
	det := aa*tt - at*at
	l.Width.SE = l.WidthScale * math.Sqrt(tt/det)
	l.Tc.SE = l.WidthScale * math.Sqrt(aa/det)
	l.Slope.SE = l.DiameterScale * math.Sqrt(line.slopeVariance)
	// Rhoc is the diameter at Tc, so its error combines those of the diameter and of Tc,
	// which are correlated.
	reach := line.centre - tc
	var both float64 // covariance of Tc with the diameter at a fixed temperature tc
	for _, q := range pairs {
		part, slope := reducedWidth(q.temperature, tc)
		weight := 1 / square(q.difference().SE)
		ofTc := weight * (aa*width*slope - at*part) / det
		both += ofTc * line.influence(q, reach) * q.covariance()
	}
	variance := square(l.DiameterScale)*(line.meanVariance+reach*reach*line.slopeVariance) +
		square(line.slope*l.Tc.SE) - 2*line.slope*both*l.WidthScale*l.DiameterScale
	l.Rhoc.SE = math.Sqrt(max(0, variance))
}

func square(v float64) float64 { return v * v }

// line is the diameter, mean + slope (centre - T). The errors of mean and slope are
// independent.
type line struct {
	centre, mean, slope         float64
	meanVariance, slopeVariance float64
	chi2                        float64
}

func (l line) at(temperature float64) float64 { return l.mean + l.slope*(l.centre-temperature) }

// influence returns the change of the diameter at centre - reach per unit change of the
// diameter of q.
func (l line) influence(q fitPoint, reach float64) float64 {
	weight := 1 / square(q.diameter().SE)
	return weight * (l.meanVariance + reach*(l.centre-q.temperature)*l.slopeVariance)
}

func fitLine(pairs []fitPoint) line {
	var l line
	var weights float64
	for _, q := range pairs {
		weight := 1 / square(q.diameter().SE)
		weights += weight
		l.centre += weight * q.temperature
		l.mean += weight * q.diameter().Mean
	}
	l.centre /= weights
	l.mean /= weights
	var xx, xy float64
	for _, q := range pairs {
		weight, x := 1/square(q.diameter().SE), l.centre-q.temperature
		xx += weight * x * x
		xy += weight * x * (q.diameter().Mean - l.mean)
	}
	l.slope = xy / xx
	l.meanVariance, l.slopeVariance = 1/weights, 1/xx
	for _, q := range pairs {
		d := q.diameter()
		l.chi2 += square((d.Mean - l.at(q.temperature)) / d.SE)
	}
	return l
}

// birgeRatio returns the factor by which errors are inflated (the Birge ratio). It is
// above 1 if chi-square is larger than expected by chance, which means that the errors of
// the points are too small or that the law does not hold.
func birgeRatio(chi2 float64, free int) float64 {
	if !md.ExceedsChance(chi2, free) {
		return 1
	}
	return math.Sqrt(chi2 / float64(free))
}
