//go:build race

package enginetest

// RaceDetector reports whether the race detector is on: it makes steps about ten
// times slower, so long runs are cut short.
const RaceDetector = true
