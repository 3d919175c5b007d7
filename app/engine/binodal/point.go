package binodal

import (
	"encoding/json"
	"math"

	"molrun/app/base/fault"
	"molrun/app/engine/input"
)

// Concentration is the concentration of a phase with its standard error; NaN means unknown.
type Concentration struct{ Mean, SE float64 }

// Point is the result of one simulation.
type Point struct {
	Job           string
	Temperature   float64 // K
	IonicStrength float64 // mol/L
	Overall       float64 // mg/mL, all chains in the box; NaN if unknown

	Condensed *bool // nil if undecided
	Converged bool
	Reason    string // why it did not condense, or why that is undecided

	Dense, Dilute           Concentration // mg/mL
	Below                   float64       // mg/mL, upper bound on the dilute concentration if that is unknown
	DenseMolar, DiluteMolar Concentration // mM
	BelowMolar              float64       // mM
	Transfer                Concentration // kT, from the dilute to the dense phase
	TransferBelow           float64       // kT, upper bound if the dilute phase has only a bound

	same system // common to all points of a series
	run  run    // settings that identify a simulation
}

// system holds the properties that all points of a series must share.
type system struct {
	model, version, sequence string
	pH                       float64
	chargedTermini           bool
}

// run holds the settings that identify a simulation: two results with equal runs,
// temperature and ionic strength are the same simulation.
type run struct {
	copies, replicas int
	box              [3]float64 // nm
	steps            int64
	equilibration    float64
	friction         float64
	sampleEvery      int64
	seed             uint64
}

// The subset of the format of summary.json that the engine reads.
type (
	report struct {
		Engine        string     `json:"engine"`
		EngineVersion string     `json:"engine_version"`
		Model         string     `json:"model"`
		Complete      bool       `json:"complete"`
		Settings      conditions `json:"settings"`
		Derived       struct {
			Concentration *float64 `json:"mean_concentration_mg_mL"`
		} `json:"derived"`
		Results struct {
			Condensed  *bool  `json:"condensed"`
			Reason     string `json:"reason"`
			Converged  bool   `json:"converged"`
			Components []struct {
				Phases *phases `json:"phases"`
			} `json:"components"`
		} `json:"results"`
	}
	conditions struct {
		Components []struct {
			Name     string `json:"name"`
			Sequence string `json:"sequence"`
			Copies   int    `json:"copies"`
		} `json:"components"`
		Protocol       string     `json:"protocol"`
		Box            [3]float64 `json:"box_nm"`
		Temperature    float64    `json:"temperature_K"`
		PH             float64    `json:"pH"`
		IonicStrength  float64    `json:"ionic_strength_M"`
		Steps          int64      `json:"steps"`
		Equilibration  float64    `json:"equilibration"`
		Replicas       int        `json:"replicas"`
		Seed           uint64     `json:"seed"`
		SampleEvery    int64      `json:"sample_every"`
		Friction       float64    `json:"friction_per_ps"`
		ChargedTermini bool       `json:"charged_termini"`
	}
	phases struct {
		Dense         estimate `json:"cden_mM"`
		Dilute        estimate `json:"cdil_mM"`
		Below         *float64 `json:"cdil_below_mM"`
		DenseMass     *float64 `json:"cden_mg_mL"`
		DenseMassSE   *float64 `json:"cden_se_mg_mL"`
		DiluteMass    *float64 `json:"cdil_mg_mL"`
		DiluteMassSE  *float64 `json:"cdil_se_mg_mL"`
		BelowMass     *float64 `json:"cdil_below_mg_mL"`
		Transfer      energy   `json:"dG_transfer"`
		TransferBelow energy   `json:"dG_transfer_below"`
	}
	estimate struct {
		Mean *float64 `json:"mean"`
		SE   *float64 `json:"se"`
	}
	energy struct {
		KT   *float64 `json:"kT"`
		KTSE *float64 `json:"kT_se"`
	}
)

// sourceEngine is the engine whose summaries are accepted.
const sourceEngine = "cg-condensate"

// valueOrNaN returns *v, or NaN for null.
func valueOrNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func (e estimate) level() Concentration { return Concentration{valueOrNaN(e.Mean), valueOrNaN(e.SE)} }

// hasTwoPhases reports whether the system has two phases. It returns false if that is
// undecided.
func (p *Point) hasTwoPhases() bool { return p.Condensed != nil && *p.Condensed }

// isSinglePhase reports whether the system has only one phase. It returns false if that
// is undecided.
func (p *Point) isSinglePhase() bool { return p.Condensed != nil && !*p.Condensed }

// isReliable reports whether the phases of the point are reliable. Absence of condensation is
// reliable only in a converged run.
func (p *Point) isReliable(unconverged bool) bool {
	return p.Converged || unconverged && !p.isSinglePhase()
}

// ReadPoint reads the summary of a job. Validation errors are located below loc.
func ReadPoint(job string, summary []byte, loc []any) (Point, []fault.Field) {
	var s report
	if err := json.Unmarshal(summary, &s); err != nil || s.Engine != sourceEngine {
		return Point{}, []fault.Field{input.Faultf(loc, input.JSON, "%s is not a summary.json of a %s job", job, sourceEngine)}
	}
	var faults []fault.Field
	wrong := func(kind, format string, args ...any) {
		faults = append(faults, input.Faultf(loc, kind, job+" "+format, args...))
	}
	c := s.Settings
	if c.Protocol != "slab" {
		wrong(input.Conflict, "has the protocol %q; only slab gives the concentrations of two phases", c.Protocol)
	}
	if n := len(c.Components); n != 1 {
		wrong(input.Conflict, "has %d components; the phases of a mixture differ in composition, too, so a binodal is made of jobs with one component", n)
	}
	if !s.Complete {
		wrong(input.Conflict, "has not finished; wait for it or run it again")
	}
	if !(c.Temperature > 0) || c.IonicStrength < 0 {
		wrong(input.Range, "is at %s K and an ionic strength of %s mol/L, which cannot be", input.Plain(c.Temperature), input.Plain(c.IonicStrength))
	}
	if len(faults) > 0 {
		return Point{}, faults
	}
	p := Point{
		Job: job, Temperature: c.Temperature, IonicStrength: c.IonicStrength, Overall: valueOrNaN(s.Derived.Concentration),
		Converged: s.Results.Converged,
		same:      system{s.Model, s.EngineVersion, c.Components[0].Sequence, c.PH, c.ChargedTermini},
		run:       run{c.Components[0].Copies, c.Replicas, c.Box, c.Steps, c.Equilibration, c.Friction, c.SampleEvery, c.Seed},
	}
	p.Condensed, p.Reason = s.Results.Condensed, s.Results.Reason
	var f phases // all values unknown
	if p.hasTwoPhases() && len(s.Results.Components) == 1 && s.Results.Components[0].Phases != nil {
		f = *s.Results.Components[0].Phases
	}
	p.Dense, p.Dilute = Concentration{valueOrNaN(f.DenseMass), valueOrNaN(f.DenseMassSE)}, Concentration{valueOrNaN(f.DiluteMass), valueOrNaN(f.DiluteMassSE)}
	p.DenseMolar, p.DiluteMolar = f.Dense.level(), f.Dilute.level()
	p.Below, p.BelowMolar = valueOrNaN(f.BelowMass), valueOrNaN(f.Below)
	p.Transfer, p.TransferBelow = Concentration{valueOrNaN(f.Transfer.KT), valueOrNaN(f.Transfer.KTSE)}, valueOrNaN(f.TransferBelow.KT)
	return p, nil
}
