package eta

import "time"

// ByProgress is the basis of estimates from a job's progress.
const ByProgress = "progress"

// Point is a program's progress at a time.
type Point struct {
	At       time.Time
	Fraction float64
}

// The minimum progress and time to compute a rate.
const (
	enough = 0.02
	span   = 1 // s
)

// LeftBy returns the remaining run time of a job from the rate of progress between two
// points. It returns false if there is too little progress, or the job has exceeded the
// predicted time.
func LeftBy(from, to Point, now time.Time) (seconds float64, known bool) {
	done, took := to.Fraction-from.Fraction, to.At.Sub(from.At).Seconds()
	if done < enough || took < span {
		return 0, false
	}
	left := took*(1-to.Fraction)/done - now.Sub(to.At).Seconds()
	return max(left, 0), left >= 0 || to.Fraction >= 1
}
