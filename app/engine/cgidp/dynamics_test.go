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
	d := thermostatted(t, "GG", 298, 1)
	advance(t, d, 10_000)
	var bond moments
	for range length(200_000, 1_000_000, 4_000_000) {
		advance(t, d, 1)
		bond.add(endToEnd(d.x))
	}
	t.Logf("bond of %.5f nm, sd %.5f nm", bond.mean, bond.sd())
	near(t, "mean", bond.mean, 0.38162, unlessPhysics(0.0005, 0.0002))
	near(t, "sd", bond.sd(), 0.01753, unlessPhysics(0.0005, 0.0003))
}

// The means were measured with another implementation.
func TestBondsOfChain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		mean    float64
		samples int
	}{
		{"Hst5", 0.3836, length(200, 2000, 40_000)},
		{"DSS1", 0.3832, length(100, 200, 20_000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := referenceProtein(t, tt.name).dynamics(t)
			d.setFriction(1)
			advance(t, d, 10_000)
			bond := bondLengths(t, d, tt.samples)
			t.Logf("bonds of %.5f nm, sd %.5f nm", bond.mean, bond.sd())
			near(t, "mean", bond.mean, tt.mean, unlessPhysics(0.0010, 0.0005))
			near(t, "sd", bond.sd(), 0.0172, unlessPhysics(0.0008, 0.0003))
		})
	}
}

func bondLengths(t *testing.T, d *dynamics, samples int) moments {
	t.Helper()
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
	return bond
}

func TestTemperature(t *testing.T) {
	t.Parallel()
	samples := length(1500, 15_000, 200_000)
	p := referenceProtein(t, "Hst5")
	d := thermostatted(t, p.sequence, 293, 1)
	advance(t, d, 2000)
	temperature := series{half: int64(samples) / 2}
	for range samples {
		advance(t, d, 10)
		temperature.add(d.temperature())
	}
	mean, se := temperature.all().mean, temperature.standardError()
	t.Logf("%.2f ± %.2f K, set to 293 K", mean, se)
	near(t, "temperature", mean, 293, unlessPhysics(2.5+3*se, 1.5))
}

// energyOverTime is what becomes of the total energy without friction, in kT per
// degree of freedom.
type energyOverTime struct{ sd, driftPerNs float64 }

// withoutFriction follows the energy of a chain whose steps take so many ps. The
// kinetic energy at a step is the mean of those half a step before and after.
func withoutFriction(t *testing.T, d *dynamics, step float64, samples int) energyOverTime {
	t.Helper()
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
		time := (float64(k) - float64(samples-1)/2) * spacing * step / 1000
		slope += time * e
		spread += time * time
	}
	return energyOverTime{energy.sd(), slope / spread}
}

// inHalfSteps returns a chain that moves as d does with half the time step: its
// beads are four times as heavy and half as fast, so a step adds dt F/4m to v/2
// and dt v/2 to x. Its energies are those of d.
func inHalfSteps(t *testing.T, d *dynamics) *dynamics {
	t.Helper()
	heavy := *d.model
	heavy.mass = make([]float64, len(d.model.mass))
	for i, m := range d.model.mass {
		heavy.mass[i] = 4 * m
	}
	h, err := newDynamics(&heavy, newSource(1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	copy(h.x, d.x)
	for i, v := range d.v {
		h.v[i] = vec{}.plus(0.5, v)
	}
	if bead := h.field.compute(h.x); bead >= 0 {
		t.Fatalf("bond of bead %d", bead)
	}
	return h
}

// Without friction the total energy stays: neither drift nor more than the
// small swing of a second-order scheme, which is a fourth for half the time step.
func TestEnergyConservation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		samples int // of every tenth step
	}{
		{"Hst5", length(1000, 10_000, 40_000)}, // at length 4 ns
		{"DSS1", length(100, 1000, 30_000)},    // at length 3 ns
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := referenceProtein(t, tt.name).dynamics(t)
			d.setFriction(1)
			advance(t, d, 10_000)
			finer := inHalfSteps(t, d)
			full := withoutFriction(t, d, timeStep, tt.samples)
			half := withoutFriction(t, finer, timeStep/2, tt.samples)
			t.Logf("kT per degree of freedom: steps of 10 fs: sd %.1e, drift %.1e per ns; of 5 fs: sd %.1e, drift %.1e per ns",
				full.sd, full.driftPerNs, half.sd, half.driftPerNs)
			if full.sd > 1e-3 {
				t.Errorf("energy fluctuates by %.1e kT per degree of freedom", full.sd)
			}
			if tt.samples >= 10_000 { // over a shorter time, the swing looks like a slope
				checkSecondOrder(t, full, half)
			}
		})
	}
}

func checkSecondOrder(t *testing.T, full, half energyOverTime) {
	t.Helper()
	if math.Abs(full.driftPerNs) > 1e-4 {
		t.Errorf("energy drifts by %.1e kT/ns per degree of freedom", full.driftPerNs)
	}
	if ratio := full.sd / half.sd; ratio < 3 || ratio > 5 {
		t.Errorf("half the time step makes the swing smaller by a factor of %.2f, want about 4", ratio)
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
