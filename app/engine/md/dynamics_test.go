package md

import (
	"math"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// Two beads have only a bond: p(r) is proportional to r² exp(-k(r-r0)²/2kT). The means of
// longer chains were measured with another implementation.
func TestBonds(t *testing.T) {
	t.Parallel()
	hst5, dss1, usual := referenceModel(t, "Hst5"), referenceModel(t, "DSS1"), enginetest.UnlessPhysics
	tests := []struct {
		name                 string
		model                *Model
		every, samples       int
		mean, sd             float64
		meanWithin, sdWithin float64
	}{
		{"two beads", NewModel("GG", in(298, 7.5, 0.15)), 1, enginetest.Length(200_000, 1_000_000, 4_000_000), 0.38162, 0.01753, usual(0.0005, 0.0002), usual(0.0005, 0.0003)},
		{"Hst5", hst5, 50, enginetest.Length(200, 2000, 40_000), 0.3836, 0.0172, usual(0.0010, 0.0005), usual(0.0008, 0.0003)},
		{"DSS1", dss1, 50, enginetest.Length(100, 200, 20_000), 0.3832, 0.0172, usual(0.0010, 0.0005), usual(0.0008, 0.0003)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := started(t, tt.model)
			d.bath = newThermostat(d.model, 1)
			advance(t, d, 10_000)
			bond := bondLengths(t, d, tt.every, tt.samples)
			t.Logf("bonds of %.5f nm, sd %.5f nm", bond.mean, bond.sd())
			enginetest.Near(t, "mean", bond.mean, tt.mean, tt.meanWithin)
			enginetest.Near(t, "sd", bond.sd(), tt.sd, tt.sdWithin)
		})
	}
}

func bondLengths(t *testing.T, d *Dynamics, every, samples int) moments {
	t.Helper()
	var bond moments
	for range samples {
		advance(t, d, every)
		for i := 1; i < len(d.x); i++ {
			r := d.x[i].Sub(d.x[i-1]).Norm()
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
	samples := enginetest.Length(1500, 15_000, 200_000)
	d := started(t, referenceModel(t, "Hst5"))
	d.bath = newThermostat(d.model, 1)
	advance(t, d, 2000)
	temperature := NewSeries(int64(samples))
	for range samples {
		advance(t, d, 10)
		temperature.Add(d.Temperature())
	}
	mean, se := temperature.Mean(), temperature.StandardError()
	t.Logf("%.2f ± %.2f K, set to 293 K", mean, se)
	enginetest.Near(t, "temperature", mean, 293, enginetest.UnlessPhysics(2.5+3*se, 1.5))
}

// energyOverTime describes the total energy without friction, in kT per degree of
// freedom.
type energyOverTime struct{ sd, driftPerNs float64 }

// withoutFriction follows the energy of a chain with a time step in ps. The kinetic
// energy at a step is the mean of its values half a step before and after.
func withoutFriction(t *testing.T, d *Dynamics, step float64, samples int) energyOverTime {
	t.Helper()
	d.bath = newThermostat(d.model, 0)
	perDegree := 1 / (d.model.kT * 3 * float64(d.model.Size()))
	var energy moments
	var slope, spread float64 // sums of a linear fit, time in ns
	const spacing = 10        // steps
	for k := range samples {
		advance(t, d, spacing-1)
		before := d.Temperature()
		potential := d.field.energy(d.x).total()
		advance(t, d, 1)
		kinetic := (before + d.Temperature()) / 2 * 1.5 * gasConstant * float64(d.model.Size())
		e := (potential + kinetic) * perDegree
		energy.add(e)
		time := (float64(k) - float64(samples-1)/2) * spacing * step / 1000
		slope += time * e
		spread += time * time
	}
	return energyOverTime{energy.sd(), slope / spread}
}

// inHalfSteps returns a chain that moves like d with half the time step: its beads have
// four times the mass and half the velocity, so a step adds dt F/4m to v/2 and dt v/2 to
// x. Its energies equal those of d.
func inHalfSteps(t *testing.T, d *Dynamics) *Dynamics {
	t.Helper()
	heavy := *d.model
	heavy.mass = make([]float64, len(d.model.mass))
	for i, m := range d.model.mass {
		heavy.mass[i] = 4 * m
	}
	h := started(t, &heavy)
	copy(h.x, d.x)
	for i, v := range d.v {
		h.v[i] = Vec{}.AddScaled(0.5, v)
	}
	if bead := h.field.compute(h.x); bead >= 0 {
		t.Fatalf("bond of bead %d", bead)
	}
	return h
}

// Without friction the total energy is conserved: it does not drift, and its fluctuations
// are those of a second-order scheme, a quarter as large with half the time step.
func TestEnergyConservation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		samples int // taken every tenth step
	}{
		{"Hst5", enginetest.Length(1000, 10_000, 40_000)}, // 4 ns in the longest tests
		{"DSS1", enginetest.Length(100, 1000, 30_000)},    // 3 ns in the longest tests
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := started(t, referenceModel(t, tt.name))
			d.bath = newThermostat(d.model, 1)
			advance(t, d, 10_000)
			finer := inHalfSteps(t, d)
			full := withoutFriction(t, d, TimeStep, tt.samples)
			half := withoutFriction(t, finer, TimeStep/2, tt.samples)
			t.Logf("kT per degree of freedom: steps of 10 fs: sd %.1e, drift %.1e per ns; of 5 fs: sd %.1e, drift %.1e per ns",
				full.sd, full.driftPerNs, half.sd, half.driftPerNs)
			if full.sd > 1e-3 {
				t.Errorf("energy fluctuates by %.1e kT per degree of freedom", full.sd)
			}
			if tt.samples >= 10_000 { // over a shorter time, fluctuations look like drift
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
		t.Errorf("half the time step reduces the fluctuation by a factor of %.2f, want about 4", ratio)
	}
}

func TestStartStructure(t *testing.T) {
	for _, name := range []string{"Hst5", "aSyn140", "ht2N4R"} {
		m := referenceModel(t, name)
		for replica := range 5 {
			d := NewDynamics(m, NewRandom(7, 0, replica))
			must.OK(t, d.Start())
			checkWalk(t, m, d.x)
		}
	}
}

// Chains start with the bond energy and kinetic energy of their temperature and keep
// them, rather than starting a fifth too cold until the thermostat has heated them.
func TestChainsStartAtTheirTemperature(t *testing.T) {
	t.Parallel()
	m := referenceModel(t, "Hst5")
	var bond, kinetic moments
	for replica := range 120 {
		d := NewDynamics(m, NewRandom(7, 0, replica))
		must.OK(t, d.Start())
		for i := 1; i < len(d.x); i++ {
			bond.add(d.x[i].Sub(d.x[i-1]).Norm())
		}
		for range 12 {
			must.OK(t, d.Advance(50))
			kinetic.add(d.Temperature())
		}
	}
	enginetest.Near(t, "bond", bond.mean, 0.3816, 0.002)
	enginetest.Near(t, "sd of bonds", bond.sd(), 0.0175, 0.001)
	enginetest.Near(t, "temperature", kinetic.mean, m.Temperature, 0.05*m.Temperature)
}

func checkWalk(t *testing.T, m *Model, x []Vec) {
	t.Helper()
	if len(x) != m.Size() {
		t.Fatalf("%d beads, want %d", len(x), m.Size())
	}
	for i := 1; i < len(x); i++ {
		enginetest.Near(t, "bond", x[i].Sub(x[i-1]).Norm(), bondLength, 6*math.Sqrt(m.kT/bondStiffness))
		for j := 0; j < i-1; j++ {
			apart := (residues[m.types[i]].sigma + residues[m.types[j]].sigma) / 2
			if r := x[i].Sub(x[j]).Norm(); r < apart-0.1 { // shake moves each bead slightly
				t.Errorf("beads %d and %d are %.3f nm apart, less than %.3f", j, i, r, apart)
			}
		}
	}
}

func TestBrokenBondEndsTheRun(t *testing.T) {
	d := started(t, referenceModel(t, "Hst5"))
	advance(t, d, 3)
	d.x[7].X += 1.5
	const want = "the chain broke at step 4, between residues 7 and 8"
	must.Fail(t, "the error", d.Advance(5), want)
	must.Equal(t, "it ends at step", d.Step(), 4)
	must.Fail(t, "a run of broken bonds is resumed", d.Resume(), "residues 7 and 8")
}

// One step moves beads as defined by the scheme, computed here in its textbook order: a
// full kick, half a drift, friction and noise, half a drift.
func TestOneStepFollowsTheScheme(t *testing.T) {
	for _, friction := range []float64{0, 0.01, 5} {
		m := referenceModel(t, "Hst5")
		d := started(t, m)
		d.bath = newThermostat(d.model, friction)
		advance(t, d, 10)
		random := *d.source
		noise := make([]float64, 3*m.Size())
		random.normals(noise)
		decay := math.Exp(-friction * 0.01)
		_, forces := chainSums(m, d.x, m.debyeHueckel)
		var x, v []Vec
		for i := range d.x {
			u := d.v[i].AddScaled(0.01/m.mass[i], forces[i])
			middle := d.x[i].AddScaled(0.005, u)
			width := math.Sqrt(8.31446261815324e-3 * m.Temperature / m.mass[i] * (1 - decay*decay))
			w := Vec{}.AddScaled(decay, u).AddScaled(width, Vec{noise[3*i], noise[3*i+1], noise[3*i+2]})
			x, v = append(x, middle.AddScaled(0.005, w)), append(v, w)
		}
		advance(t, d, 1)
		for i := range x {
			if off := d.x[i].Sub(x[i]).Norm() + d.v[i].Sub(v[i]).Norm(); off > 1e-9 {
				t.Fatalf("friction %g, bead %d: off by %g: %v, want %v", friction, i, off, d.x[i], x[i])
			}
		}
	}
}

func TestVelocitiesBeginWithTheTemperature(t *testing.T) {
	m := referenceModel(t, "Hst5")
	var temperature moments
	var drift Vec
	const replicas = 400
	for replica := range replicas {
		d := NewDynamics(m, NewRandom(3, 0, replica))
		must.OK(t, d.Start())
		temperature.add(d.Temperature())
		drift = drift.AddScaled(1.0/replicas, d.v[5])
	}
	se := temperature.sd() / math.Sqrt(replicas)
	enginetest.Near(t, "temperature", temperature.mean, m.Temperature, 4*se)
	enginetest.Near(t, "spread of the temperature", temperature.sd(), m.Temperature*math.Sqrt(2/(3*float64(m.Size()))), 0.2*temperature.sd())
	enginetest.Near(t, "drift", drift.Norm(), 0, 5*math.Sqrt(m.kT/m.mass[5]/replicas))
}

func TestStepsAllocateNothing(t *testing.T) {
	d := started(t, referenceModel(t, "Hst5"))
	advance(t, d, 20_000)
	if n := testing.AllocsPerRun(100, func() { advance(t, d, 10) }); n > 0.5 {
		t.Errorf("%.1f allocations in ten steps", n)
	}
}
