package binodal

import (
	"math"

	"molrun/app/engine/md"
)

// beta is how fast the phases become alike near a critical point of the 3D Ising class, to
// which mixtures of liquids belong.
const beta = 0.325

// Law is a binodal near its critical point, in K and mg/mL:
//
//	dense − dilute       = Width (1 − T/Tc)^beta
//	(dense + dilute) / 2 = Rhoc + Slope (Tc − T)
//
// The second line is the law of rectilinear diameter.
type Law struct {
	Tc, Width   Level
	Rhoc, Slope Level

	// Chi-squares of the two lines, each with Free degrees of freedom.
	WidthChi2, DiameterChi2 float64
	Free                    int

	// Where the points deviate from a line by more than chance, the errors of what follows
	// from it are larger by these factors, which are 1 otherwise.
	WidthScale, DiameterScale float64

	// Deviations are those of the points from the first line, in their errors.
	Deviations []float64
}

// phasePair is what a fit takes of a point.
type phasePair struct {
	temperature   float64 // K
	dense, dilute Level   // mg/mL
}

// difference is dense - dilute with its standard error.
func (q phasePair) difference() Level {
	return Level{q.dense.Mean - q.dilute.Mean, math.Hypot(q.dense.SE, q.dilute.SE)}
}

// diameter is the mean of both phases with its standard error.
func (q phasePair) diameter() Level {
	return Level{(q.dense.Mean + q.dilute.Mean) / 2, math.Hypot(q.dense.SE, q.dilute.SE) / 2}
}

// shared is the covariance of the two: both have the errors of both phases.
func (q phasePair) shared() float64 {
	return (q.dense.SE*q.dense.SE - q.dilute.SE*q.dilute.SE) / 2
}

// shape is the remaining part of the width at a temperature, with its derivative by Tc.
func shape(temperature, tc float64) (value, slope float64) {
	t := 1 - temperature/tc
	if t <= 0 {
		return 0, 0
	}
	value = math.Pow(t, beta)
	return value, beta * value / t * temperature / (tc * tc)
}

// At returns the phases at a temperature below Tc, in mg/mL.
func (l *Law) At(temperature float64) (dense, dilute float64) {
	part, _ := shape(temperature, l.Tc.Mean)
	middle := l.diameterAt(temperature)
	return middle + l.Width.Mean*part/2, middle - l.Width.Mean*part/2
}

func (l *Law) diameterAt(temperature float64) float64 {
	return l.Rhoc.Mean + l.Slope.Mean*(l.Tc.Mean-temperature)
}

// fitLaw fits the law to points at three or more temperatures, with Tc above a temperature.
// The two lines are fitted one after the other, each weighted by its own errors. Together,
// the small errors of the dilute phase would decide about everything, where the law holds
// least: far from Tc. It is nil if there is no best Tc; reason says why.
func fitLaw(pairs []phasePair, above float64) (l *Law, reason string) {
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
		part, _ := shape(q.temperature, tc)
		l.Deviations = append(l.Deviations, (d.Mean-width*part)/d.SE)
	}
	l.addErrors(pairs, line)
	return l, ""
}

// addErrors propagates the errors of the points to first order.
func (l *Law) addErrors(pairs []phasePair, line line) {
	l.WidthScale, l.DiameterScale = scale(l.WidthChi2, l.Free), scale(l.DiameterChi2, l.Free)
	tc, width := l.Tc.Mean, l.Width.Mean
	// The normal equations of width and Tc: their inverse is the covariance.
	var aa, at, tt float64
	for _, q := range pairs {
		part, slope := shape(q.temperature, tc)
		weight := 1 / square(q.difference().SE)
		aa += weight * part * part
		at += weight * part * width * slope
		tt += weight * square(width*slope)
	}
	det := aa*tt - at*at
	l.Width.SE = l.WidthScale * math.Sqrt(tt/det)
	l.Tc.SE = l.WidthScale * math.Sqrt(aa/det)
	l.Slope.SE = l.DiameterScale * math.Sqrt(line.slopeVariance)
	// Rhoc is the diameter at Tc, so both errors move it, and they are not independent.
	reach := line.centre - tc
	var both float64 // the covariance of Tc with the diameter at a fixed temperature tc
	for _, q := range pairs {
		part, slope := shape(q.temperature, tc)
		weight := 1 / square(q.difference().SE)
		ofTc := weight * (aa*width*slope - at*part) / det
		both += ofTc * line.influence(q, reach) * q.shared()
	}
	variance := square(l.DiameterScale)*(line.meanVariance+reach*reach*line.slopeVariance) +
		square(line.slope*l.Tc.SE) - 2*line.slope*both*l.WidthScale*l.DiameterScale
	l.Rhoc.SE = math.Sqrt(max(0, variance))
}

func square(v float64) float64 { return v * v }

// line is the diameter, mean + slope (centre - T), whose two numbers have independent errors.
type line struct {
	centre, mean, slope         float64
	meanVariance, slopeVariance float64
	chi2                        float64
}

func (l line) at(temperature float64) float64 { return l.mean + l.slope*(l.centre-temperature) }

// influence is how much the diameter at centre - reach changes with that of a point.
func (l line) influence(q phasePair, reach float64) float64 {
	weight := 1 / square(q.diameter().SE)
	return weight * (l.meanVariance + reach*(l.centre-q.temperature)*l.slopeVariance)
}

func fitLine(pairs []phasePair) line {
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

// scale is the factor by which errors grow where a chi-square is beyond chance: then the
// points are worse than their errors say, or the law is (Birge's ratio).
func scale(chi2 float64, free int) float64 {
	if !md.BeyondChance(chi2, free) {
		return 1
	}
	return math.Sqrt(chi2 / float64(free))
}
