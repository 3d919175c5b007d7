package eta

import "time"

// ByProgress is the basis of what follows from a job's progress.
const ByProgress = "progress"

// Point is how far a program had come at a time.
type Point struct {
	At       time.Time
	Fraction float64
}

// A rate is taken from at least this much progress and time.
const (
	enough = 0.02
	span   = 1 // s
)

// LeftBy returns how long a job still runs at its rate of progress between two points;
// false if there is too little progress, or it has taken longer than that.
func LeftBy(from, to Point, now time.Time) (seconds float64, known bool) {
	done, took := to.Fraction-from.Fraction, to.At.Sub(from.At).Seconds()
	if done < enough || took < span {
		return 0, false
	}
	left := took*(1-to.Fraction)/done - now.Sub(to.At).Seconds()
	return max(left, 0), left >= 0 || to.Fraction >= 1
}
