package md

import (
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// usualFriction is the default of the setting friction_per_ps.
const usualFriction = 0.01

func referenceModel(t testing.TB, name string) *Model {
	t.Helper()
	p := enginetest.ReferenceProtein(t, name)
	return NewModel(p.Sequence, in(p.Temperature, p.PH, p.IonicStrength))
}

// in returns conditions with the other settings at their defaults.
func in(temperature, pH, ionicStrength float64) Conditions {
	return Conditions{
		Temperature: temperature, PH: pH, IonicStrength: ionicStrength, Friction: usualFriction, ChargedTermini: true,
	}
}

// started returns a chain in its initial conformation, with seed 1.
func started(t testing.TB, m *Model) *Dynamics {
	t.Helper()
	d := NewDynamics(m, NewRandom(1, 0, 1))
	must.OK(t, d.Start())
	return d
}

func advance(t testing.TB, d *Dynamics, steps int) {
	t.Helper()
	must.OK(t, d.Advance(steps))
}
