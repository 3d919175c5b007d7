package cgidp

import "os"

// physics tells whether tests of the physics run at length, for half an hour
// instead of seconds: if CGIDP_PHYSICS is set, as .ci/physics does.
func physics() bool { return os.Getenv("CGIDP_PHYSICS") != "" }

// length is how much a test computes: with the race detector, usually, and when
// the physics is tested at length.
func length(race, usual, long int) int {
	switch {
	case raceDetector:
		return race
	case physics():
		return long
	}
	return usual
}

// unlessPhysics widens a tolerance for the short version of a test.
func unlessPhysics(wide, tolerance float64) float64 {
	if physics() && !raceDetector {
		return tolerance
	}
	return wide
}
