package cgidp

import (
	"math"
	"strings"
)

// Constants of nature: CODATA 2018 (exact since the SI of 2019, but for eps0).
const (
	gasConstant        = 8.31446261815324e-3 // kJ/mol/K
	elementaryCharge   = 1.602176634e-19     // C
	vacuumPermittivity = 8.8541878128e-12    // F/m
	boltzmann          = 1.380649e-23        // J/K
	avogadro           = 6.02214076e23       // 1/mol
)

// Constants of the model.
const (
	bondStiffness = 8033.0 // kJ/mol/nm²
	bondLength    = 0.38   // nm
	stickEnergy   = 0.8368 // kJ/mol, 0.2 kcal/mol: epsilon of Ashbaugh-Hatch
	stickCutoff   = 2.0    // nm
	chargeCutoff  = 4.0    // nm
	timeStep      = 0.01   // ps
	maxBond       = 1.0    // nm; a longer bond means that the run has failed

	histidinePK      = 6.0
	nTerminusMass    = 2.0  // g/mol: H2 as in the published parameters
	cTerminusMass    = 16.0 // g/mol: O
	contactDistance  = 1.0  // nm
	contactExclusion = 3    // neighbours along the chain that count as no contact
)

// conditions are what surrounds the chain.
type conditions struct {
	temperature    float64 // K
	pH             float64
	ionicStrength  float64 // mol/L
	friction       float64 // 1/ps
	chargedTermini bool
}

// dielectric is the relative permittivity of water at a temperature in K
// (Akerlof and Oshry, JACS 1950, 72, 2844), valid from 273 to 373 K.
func dielectric(temperature float64) float64 {
	t := temperature
	return 5321/t + 233.76 - 0.9297*t + 1.417e-3*t*t - 8.292e-7*t*t*t
}

// bjerrumLength is the distance in nm at which two unit charges have energy kT.
func bjerrumLength(temperature float64) float64 {
	e2 := elementaryCharge * elementaryCharge
	metres := e2 / (4 * math.Pi * vacuumPermittivity * dielectric(temperature) * boltzmann * temperature)
	return metres * 1e9
}

// inverseDebyeLength is kappa in 1/nm.
func inverseDebyeLength(temperature, ionicStrength float64) float64 {
	return math.Sqrt(8 * math.Pi * bjerrumLength(temperature) * ionicStrength * avogadro * 1e-24)
}

// model is one chain with its parameters at given conditions. It does not change
// after newModel, so replicas share it.
type model struct {
	conditions
	types  []uint8   // place in residueLetters
	mass   []float64 // g/mol
	charge []float64 // elementary charges
	kT     float64   // kJ/mol
	kappa  float64   // 1/nm
	lBkT   float64   // Bjerrum length times kT, kJ nm/mol
	stick  *stickTable
	screen *screenTable
}

// newModel builds the chain for a sequence of letters in residueLetters.
func newModel(sequence string, c conditions) *model {
	n := len(sequence)
	m := &model{
		conditions: c,
		types:      make([]uint8, n),
		mass:       make([]float64, n),
		charge:     make([]float64, n),
		kT:         gasConstant * c.temperature,
		kappa:      inverseDebyeLength(c.temperature, c.ionicStrength),
		stick:      newStickTable(),
	}
	m.lBkT = bjerrumLength(c.temperature) * m.kT
	m.screen = newScreenTable(m.kappa)
	for i := range n {
		t := strings.IndexByte(residueLetters, sequence[i])
		m.types[i] = uint8(t)
		m.mass[i] = residues[t].mass
		m.charge[i] = residues[t].charge
		if sequence[i] == 'H' {
			m.charge[i] = 1 / (1 + math.Pow(10, c.pH-histidinePK))
		}
	}
	m.mass[0] += nTerminusMass
	m.mass[n-1] += cTerminusMass
	if c.chargedTermini {
		m.charge[0]++
		m.charge[n-1]--
	}
	return m
}

func (m *model) size() int { return len(m.types) }

func (m *model) netCharge() float64 { return sum(m.charge) }

func (m *model) totalMass() float64 { return sum(m.mass) }

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}
