// Package enginetest contains what the tests of the engine and of its physics share: the
// lengths of runs, independent formulas, and published reference values.
package enginetest

import (
	"math"
	"os"
	"testing"
)

// Physics reports whether the physics tests run at full length, which takes half an hour
// instead of seconds. The variable CGIDP_PHYSICS enables that, as in .ci/physics.
func Physics() bool { return os.Getenv("CGIDP_PHYSICS") != "" }

// Length returns race under the race detector, long for physics tests at full length, and
// otherwise usual.
func Length(race, usual, long int) int {
	switch {
	case RaceDetector:
		return race
	case Physics():
		return long
	}
	return usual
}

// UnlessPhysics returns tolerance for physics tests at full length, and otherwise the
// larger tolerance wide.
func UnlessPhysics(wide, tolerance float64) float64 {
	if Physics() && !RaceDetector {
		return tolerance
	}
	return wide
}

// Near fails the test unless got is within a tolerance of want.
func Near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.9g, want %.9g ± %.2g", what, got, want, tolerance)
	}
}
