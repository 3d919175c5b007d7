//go:build !race

package enginetest

// RaceDetector reports whether the race detector is on. It slows down simulation steps
// about tenfold, so long runs are shortened.
const RaceDetector = false
