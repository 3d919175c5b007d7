//go:build !race

package cgidp

// raceDetector makes steps about ten times slower; long runs are cut short.
const raceDetector = false
