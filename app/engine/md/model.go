package md

import (
	"fmt"
	"math"
	"strings"
)

// Physical constants: CODATA 2018, exact since the 2019 revision of the SI except for the
// vacuum permittivity.
const (
	gasConstant        = 8.31446261815324e-3 // kJ/mol/K
	elementaryCharge   = 1.602176634e-19     // C
	vacuumPermittivity = 8.8541878128e-12    // F/m
	boltzmann          = 1.380649e-23        // J/K
	avogadro           = 6.02214076e23       // 1/mol
)

// Model constants for single residues.
const (
	histidinePK   = 6.0
	nTerminusMass = 2.0  // g/mol: H2, as in the published parameters
	cTerminusMass = 16.0 // g/mol: O
)

// Conditions are the simulation conditions of a chain.
type Conditions struct {
	Temperature    float64 // K
	PH             float64
	IonicStrength  float64 // mol/L
	Friction       float64 // of the thermostat, 1/ps
	ChargedTermini bool    // adds +1 to the first residue and -1 to the last
}

// Describe returns a textual description of the conditions.
func (c Conditions) Describe() string {
	return fmt.Sprintf("%g K, pH %g, ionic strength %g mol/L", c.Temperature, c.PH, c.IonicStrength)
}

// Dielectric returns the relative permittivity of water at a temperature in K (Akerlof
// and Oshry, JACS 1950, 72, 2844), valid from 273 to 373 K.
func Dielectric(temperature float64) float64 {
	t := temperature
	return 5321/t + 233.76 - 0.9297*t + 1.417e-3*t*t - 8.292e-7*t*t*t
}

// bjerrumLength returns the distance in nm at which two unit charges have energy kT.
func bjerrumLength(temperature float64) float64 {
	e2 := elementaryCharge * elementaryCharge
	metres := e2 / (4 * math.Pi * vacuumPermittivity * Dielectric(temperature) * boltzmann * temperature)
	return metres * 1e9
}

// DebyeLength returns the screening length of charges in nm.
func DebyeLength(temperature, ionicStrength float64) float64 {
	return 1 / inverseDebyeLength(temperature, ionicStrength)
}

// inverseDebyeLength returns kappa in 1/nm.
func inverseDebyeLength(temperature, ionicStrength float64) float64 {
	return math.Sqrt(8 * math.Pi * bjerrumLength(temperature) * ionicStrength * avogadro * 1e-24)
}

// Model is one chain with its parameters under given conditions. It is immutable, so any
// number of simulations can share it.
type Model struct {
	Conditions
	types         []uint8   // index in Letters
	mass          []float64 // g/mol
	charge        []float64 // elementary charges
	kT            float64   // kJ/mol
	kappa         float64   // 1/nm
	lBkT          float64   // Bjerrum length times kT, kJ nm/mol
	ashbaughHatch *ashbaughHatchTable
	debyeHueckel  *debyeHueckelTable
}

// NewModel builds the chain for a sequence in one-letter code. It panics unless the
// sequence has at least one letter and all of them are among the twenty amino acids, in
// upper case.
func NewModel(sequence string, c Conditions) *Model {
	n := len(sequence)
	m := &Model{
		Conditions:    c,
		types:         make([]uint8, n),
		mass:          make([]float64, n),
		charge:        make([]float64, n),
		kT:            gasConstant * c.Temperature,
		kappa:         inverseDebyeLength(c.Temperature, c.IonicStrength),
		ashbaughHatch: newAshbaughHatchTable(),
	}
	m.lBkT = bjerrumLength(c.Temperature) * m.kT
	m.debyeHueckel = newDebyeHueckelTable(m.kappa)
	for i := range n {
		t := strings.IndexByte(Letters, sequence[i])
		if t < 0 {
			panic(fmt.Sprintf("%q in the sequence is not an amino acid", sequence[i]))
		}
		m.types[i] = uint8(t)
		m.mass[i] = residues[t].mass
		m.charge[i] = residues[t].charge
		if sequence[i] == 'H' {
			m.charge[i] = 1 / (1 + power(10, c.PH-histidinePK))
		}
	}
	m.mass[0] += nTerminusMass
	m.mass[n-1] += cTerminusMass
	if c.ChargedTermini {
		m.charge[0]++
		m.charge[n-1]--
	}
	return m
}

// Size returns the number of beads.
func (m *Model) Size() int { return len(m.types) }

// Mass returns the mass of a bead, counted from 0, in g/mol.
func (m *Model) Mass(bead int) float64 { return m.mass[bead] }

// TotalMass returns the mass of the chain in g/mol.
func (m *Model) TotalMass() float64 { return sum(m.mass) }

// NetCharge returns the charge of the chain in elementary charges.
func (m *Model) NetCharge() float64 { return sum(m.charge) }

// KT returns the thermal energy in kJ/mol.
func (m *Model) KT() float64 { return m.kT }

// DebyeLength returns the screening length of charges in nm.
func (m *Model) DebyeLength() float64 { return 1 / m.kappa }

// Centre returns the center of mass of a conformation, in nm.
func (m *Model) Centre(x []Vec) Vec {
	var c Vec
	for i := range x {
		c = c.AddScaled(m.mass[i], x[i])
	}
	return Vec{}.AddScaled(1/m.TotalMass(), c)
}

// GyrationRadius returns the mass-weighted radius of gyration of a conformation, in nm.
func (m *Model) GyrationRadius(x []Vec) float64 {
	c := m.Centre(x)
	moment := 0.0
	for i := range x {
		moment += m.mass[i] * x[i].Sub(c).Norm2()
	}
	return math.Sqrt(moment / m.TotalMass())
}

// EndToEnd returns the distance between the first and last beads, in nm.
func EndToEnd(x []Vec) float64 { return x[len(x)-1].Sub(x[0]).Norm() }

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}
