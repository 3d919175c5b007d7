package eta

import "time"

// ByProgress is the basis of what follows from a job's progress.
const ByProgress = "progress"

// Point is how far a program had come at a time.
type Point struct {
	At       time.Time
	Fraction float64
}

// enough is the least progress that a rate is taken from.
const enough = 0.02

// LeftBy returns how long a job still runs at its rate of progress between two points;
// false if there is too little progress, or it has taken longer than that.
func LeftBy(from, to Point, now time.Time) (seconds float64, known bool) {
	done, span := to.Fraction-from.Fraction, to.At.Sub(from.At).Seconds()
	if done < enough || span <= 0 {
		return 0, false
	}
	left := span*(1-to.Fraction)/done - now.Sub(to.At).Seconds()
	return max(left, 0), left >= 0 || to.Fraction >= 1
}
