package cgidp

import (
	"math"
	"testing"
)

// thermostatted returns a chain with a friction in 1/ps.
func thermostatted(t *testing.T, sequence string, temperature, friction float64) *dynamics {
	t.Helper()
	c := conditions{temperature: temperature, pH: 7.5, ionicStrength: 0.15, friction: friction, chargedTermini: true}
	d, err := newDynamics(newModel(sequence, c), newSource(1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Two beads have only a bond: p(r) is proportional to r² exp(-k(r-r0)²/2kT).
func TestBondDistribution(t *testing.T) {
	t.Parallel()
	steps := 1_000_000
	if raceDetector {
		steps = 200_000
	}
	d := thermostatted(t, "GG", 298, 1)
	advance(t, d, 10_000)
	var bond moments
	for range steps {
		advance(t, d, 1)
		bond.add(endToEnd(d.x))
	}
	near(t, "mean", bond.mean, 0.38162, 0.0005)
	near(t, "sd", bond.sd(), 0.01753, 0.0005)
}

func TestBondsOfChain(t *testing.T) {
	t.Parallel()
	samples := 2000
	if raceDetector {
		samples = 200
	}
	d := thermostatted(t, referenceProtein(t, "Hst5").sequence, 293, 1)
	advance(t, d, 10_000)
	var bond moments
	for range samples {
		advance(t, d, 50)
		for i := 1; i < len(d.x); i++ {
			r := d.x[i].sub(d.x[i-1]).norm()
			bond.add(r)
			if r < 0.27 || r > 0.49 {
				t.Errorf("step %d: bond of %.3f nm", d.step, r)
			}
		}
	}
	near(t, "mean", bond.mean, 0.3836, 0.0010)
	near(t, "sd", bond.sd(), 0.0172, 0.0008)
}

func TestTemperature(t *testing.T) {
	t.Parallel()
	samples := 15_000
	if raceDetector {
		samples = 1500
	}
	p := referenceProtein(t, "Hst5")
	d := thermostatted(t, p.sequence, 293, 1)
	advance(t, d, 2000)
	temperature := series{half: int64(samples) / 2}
	for range samples {
		advance(t, d, 10)
		temperature.add(d.temperature())
	}
	near(t, "temperature", temperature.all().mean, 293, 2.5+3*temperature.standardError())
}

// Without friction the total energy stays: neither drift nor more than the
// small swing of a second-order scheme.
func TestEnergyConservation(t *testing.T) {
	t.Parallel()
	samples := 10_000
	if raceDetector {
		samples = 1000
	}
	d := referenceProtein(t, "Hst5").dynamics(t)
	d.setFriction(1)
	advance(t, d, 10_000)
	d.setFriction(0)
	perDegree := 1 / (d.model.kT * 3 * float64(d.model.size()))
	var energy moments
	var slope, spread float64 // sums of a linear fit, time in ns
	const spacing = 10        // steps
	for k := range samples {
		advance(t, d, spacing-1)
		before := d.temperature()
		potential := d.field.energy(d.x).total()
		advance(t, d, 1)
		kinetic := (before + d.temperature()) / 2 * 1.5 * gasConstant * float64(d.model.size())
		e := (potential + kinetic) * perDegree
		energy.add(e)
		time := (float64(k) - float64(samples-1)/2) * spacing * timeStep / 1000
		slope += time * e
		spread += time * time
	}
	if sd := energy.sd(); sd > 1e-3 {
		t.Errorf("energy fluctuates by %.1e kT per degree of freedom", sd)
	}
	if drift := slope / spread; math.Abs(drift) > 1e-4 && !raceDetector {
		t.Errorf("energy drifts by %.1e kT/ns per degree of freedom", drift)
	}
}

func TestStartStructure(t *testing.T) {
	for _, name := range []string{"Hst5", "aSyn140", "ht2N4R"} {
		m := referenceProtein(t, name).model()
		for replica := range 5 {
			d, err := newDynamics(m, newSource(7, 0, replica))
			if err != nil {
				t.Fatal(err)
			}
			checkWalk(t, m, d.x)
		}
	}
}

func checkWalk(t *testing.T, m *model, x []vec) {
	t.Helper()
	if len(x) != m.size() {
		t.Fatalf("%d beads, want %d", len(x), m.size())
	}
	for i := 1; i < len(x); i++ {
		near(t, "bond", x[i].sub(x[i-1]).norm(), bondLength, 1e-12)
		for j := 0; j < i-1; j++ {
			apart := (residues[m.types[i]].sigma + residues[m.types[j]].sigma) / 2
			if r := x[i].sub(x[j]).norm(); r < apart {
				t.Errorf("beads %d and %d are %.3f nm apart, less than %.3f", j, i, r, apart)
			}
		}
	}
}

func TestSourcesDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for sequence := range maxSequences {
		for replica := 1; replica <= 64; replica++ {
			seen[newSource(1, sequence, replica).Uint64()] = true
		}
	}
	if len(seen) != maxSequences*64 {
		t.Errorf("%d sources of %d differ", len(seen), maxSequences*64)
	}
}

func TestStepsAllocateNothing(t *testing.T) {
	d := referenceProtein(t, "Hst5").dynamics(t)
	advance(t, d, 20_000)
	if n := testing.AllocsPerRun(100, func() { advance(t, d, 10) }); n > 0.5 {
		t.Errorf("%.1f allocations in ten steps", n)
	}
}
