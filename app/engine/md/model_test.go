package md

import (
	"math"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

func TestConstants(t *testing.T) {
	tests := []struct{ temperature, dielectric, bjerrum, kappa, lBkT float64 }{
		{277, 86.543718, 0.697049, 1.257977, 1.605379},
		{293, 80.308847, 0.710146, 1.269740, 1.730014},
		{298, 78.456762, 0.714714, 1.273817, 1.770854},
		{310, 74.188519, 0.726575, 1.284344, 1.872735},
	}
	for _, tt := range tests {
		m := NewModel("AAAAA", Conditions{Temperature: tt.temperature, IonicStrength: 0.15, PH: 7})
		enginetest.Near(t, "dielectric", Dielectric(tt.temperature), tt.dielectric, 1e-6*tt.dielectric)
		enginetest.Near(t, "Bjerrum length", bjerrumLength(tt.temperature), tt.bjerrum, 1e-6*tt.bjerrum)
		enginetest.Near(t, "kappa", m.kappa, tt.kappa, 1e-6*tt.kappa)
		enginetest.Near(t, "lB kT", m.lBkT, tt.lBkT, 1e-6*tt.lBkT)
	}
}

func TestChargesAndMasses(t *testing.T) {
	at := Conditions{Temperature: 298, IonicStrength: 0.15, PH: 6, ChargedTermini: true}
	m := NewModel("HKDEH", at)
	for i, want := range []float64{1.5, 1, -1, -1, -0.5} {
		enginetest.Near(t, "charge", m.charge[i], want, 1e-12)
	}
	enginetest.Near(t, "first mass", m.mass[0], 137.14+2, 1e-9)
	enginetest.Near(t, "last mass", m.mass[4], 137.14+16, 1e-9)
	at.ChargedTermini = false
	enginetest.Near(t, "charge of a free end", NewModel("HKDEH", at).charge[0], 0.5, 1e-12)
	enginetest.Near(t, "mass of a free end", NewModel("HKDEH", at).mass[0], 137.14+2, 1e-9)
}

func pairOf(a, b byte) *ashbaughHatchPair {
	m := NewModel(string([]byte{a, b}), Conditions{Temperature: 298, IonicStrength: 0.15, PH: 7})
	return &m.ashbaughHatch[m.types[0]][m.types[1]]
}

func TestAshbaughHatchEnergy(t *testing.T) {
	distances := []float64{0.45, 0.55, 0.65, 0.8, 1.0, 1.5, 1.999}
	tests := []struct {
		pair string
		want [7]float64
	}{
		{"AA", [7]float64{7.041307, -0.200922, -0.155951, -0.053587, -0.014568, -0.001084, -0.000001}},
		{"YY", [7]float64{227.129200, 14.308183, -0.094706, -0.651876, -0.216788, -0.017031, -0.000011}},
		{"KE", [7]float64{118.528129, 6.824253, 0.073296, -0.048659, -0.015000, -0.001157, -0.000001}},
		{"GR", [7]float64{28.412582, 0.351515, -0.564934, -0.232618, -0.065722, -0.004948, -0.000003}},
	}
	for _, tt := range tests {
		for k, r := range distances {
			enginetest.Near(t, tt.pair, pairOf(tt.pair[0], tt.pair[1]).energy(r*r), tt.want[k], 6e-7)
		}
	}
	must.Equal(t, "energy at the cutoff", pairOf('A', 'A').energy(4), 0)
}

func TestDebyeHueckelEnergy(t *testing.T) {
	m := NewModel("AAAAA", Conditions{Temperature: 298, IonicStrength: 0.15, PH: 7})
	for r, want := range map[float64]float64{
		0.5: 1.870586, 0.7: 1.034426, 1: 0.492705, 2: 0.066587, 3: 0.010213, 4: 0, 5: 0,
	} {
		enginetest.Near(t, "Debye-Hückel", debyeHueckelEnergy(m.lBkT, m.kappa, r), want, 6e-7)
	}
}

func TestPairForcesAreSlopes(t *testing.T) {
	check := func(what string, end, tolerance float64, force, energy func(r float64) float64) {
		const h = 1e-6
		for r := 0.4; r < end; r += 0.013 {
			slope := (energy(r+h) - energy(r-h)) / (2 * h)
			enginetest.Near(t, what, force(r), -slope, 1e-5+tolerance*math.Abs(slope))
		}
	}
	for _, pair := range []string{"AA", "YY", "KE", "GR"} {
		p := pairOf(pair[0], pair[1])
		// Combine the parameters as the pair loops do.
		sizeA, strengthA := halfAshbaughHatch(uint8(strings.IndexByte(Letters, pair[0])))
		sizeB, strengthB := halfAshbaughHatch(uint8(strings.IndexByte(Letters, pair[1])))
		check(pair, 1.99, 1e-6,
			func(r float64) float64 { return ashbaughHatchForce(r*r, sizeA+sizeB, strengthA+strengthB) * r },
			func(r float64) float64 { return p.energy(r * r) })
	}
	table := newDebyeHueckelTable(1.27)
	check("Debye-Hückel", 3.99, 3e-6,
		func(r float64) float64 { return table.forceOverR(r*r) * r },
		func(r float64) float64 { return debyeHueckelEnergy(1, 1.27, r) })
}

func TestDebyeHueckelTable(t *testing.T) {
	table := newDebyeHueckelTable(1.27)
	for r2 := 0.01; r2 < 16; r2 += 0.00137 {
		want := debyeHueckelForceOverR(1.27, math.Sqrt(r2))
		enginetest.Near(t, "tabulated force", table.forceOverR(r2), want, 2e-6*want)
	}
}
