// Package enginetest is shared by the tests of the engine and of its physics: how much
// they compute, and the published proteins they compare with.
package enginetest

import (
	"math"
	"os"
	"testing"
)

// Physics reports whether the physics tests run at full length, for half an hour instead
// of seconds. CGIDP_PHYSICS enables that, as .ci/physics does.
func Physics() bool { return os.Getenv("CGIDP_PHYSICS") != "" }

// Length returns how much a test computes: with the race detector, usually, or at full
// length.
func Length(race, usual, long int) int {
	switch {
	case RaceDetector:
		return race
	case Physics():
		return long
	}
	return usual
}

// UnlessPhysics returns the wider tolerance for the short version of a test.
func UnlessPhysics(wide, tolerance float64) float64 {
	if Physics() && !RaceDetector {
		return tolerance
	}
	return wide
}

// Near fails the test unless got equals want within a tolerance.
func Near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.9g, want %.9g ± %.2g", what, got, want, tolerance)
	}
}
