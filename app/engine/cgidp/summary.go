package cgidp

import (
	"fmt"
	"math"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
)

// The format of summary.json.
type (
	summary struct {
		Engine        string          `json:"engine"`
		EngineVersion string          `json:"engine_version"`
		Molrun        string          `json:"molrun_version"`
		Input         string          `json:"input_sha256"`
		Model         string          `json:"model"`
		Name          string          `json:"name"`
		Sequence      string          `json:"sequence"`
		Residues      int             `json:"n_residues"`
		Complete      bool            `json:"complete"`
		Settings      settingsView    `json:"settings"`
		Derived       derivedView     `json:"derived"`
		Results       resultsView     `json:"results"`
		Performance   performanceView `json:"performance"`
		Warnings      []string        `json:"warnings"`
		Cite          []string        `json:"cite"`
	}
	settingsView struct {
		Temperature    float64 `json:"temperature_K"`
		PH             float64 `json:"pH"`
		IonicStrength  float64 `json:"ionic_strength_M"`
		Steps          int64   `json:"steps"`
		Equilibration  float64 `json:"equilibration"`
		Replicas       int     `json:"replicas"`
		Seed           uint64  `json:"seed"`
		FrameEvery     int64   `json:"frame_every"`
		SampleEvery    int64   `json:"sample_every"`
		Friction       float64 `json:"friction_per_ps"`
		ChargedTermini bool    `json:"charged_termini"`
	}
	derivedView struct {
		NetCharge   store.Number `json:"net_charge"`
		Mass        store.Number `json:"mass_Da"`
		Dielectric  store.Number `json:"dielectric"`
		DebyeLength store.Number `json:"debye_length_nm"`
		TimeStep    store.Number `json:"time_step_ps"`
	}
	resultsView struct {
		Rg          estimateView `json:"rg_nm"`
		Ree         estimateView `json:"ree_nm"`
		Nu          store.Number `json:"nu"`
		NuSE        store.Number `json:"nu_se"`
		R0          store.Number `json:"R0_nm"`
		Misfit      store.Number `json:"nu_fit_relative_rms"`
		Temperature estimateView `json:"temperature_K"`
		Converged   bool         `json:"converged"`
	}
	estimateView struct {
		Mean        store.Number `json:"mean"`
		SE          store.Number `json:"se"`
		SD          store.Number `json:"sd"`
		Independent store.Number `json:"n_eff"`
		Time        store.Figure `json:"integrated_autocorrelation_time_ns"`
	}
	performanceView struct {
		StepsPerSecond store.Number `json:"steps_per_second"` // per core
		Wall           store.Number `json:"wall_s"`
		Cores          int          `json:"cores"`
	}
)

func (s *system) view(e md.Estimate) estimateView {
	return estimateView{
		store.Number(e.Mean), store.Number(e.SE), store.Number(e.SD), store.Number(math.Round(e.Independent)),
		store.Figure(e.Time * float64(s.plan.sampleEvery) * md.TimeStep / 1000),
	}
}

func (s *system) summary(res *results) *summary {
	m, set := s.model, s.settings
	return &summary{
		Engine:        engineName,
		EngineVersion: engineVersion,
		Molrun:        s.origin().Version(),
		Input:         s.origin().Hex(),
		Model:         modelName,
		Name:          s.Name,
		Sequence:      s.Residues,
		Residues:      m.Size(),
		Complete:      res.complete,
		Settings: settingsView{
			set.Temperature, set.PH, set.IonicStrength, s.Steps, set.Equilibration, set.Replicas, set.Seed,
			s.FrameEvery, set.SampleEvery, set.Friction, set.ChargedTermini,
		},
		Derived: derivedView{
			NetCharge:   store.Number(m.NetCharge()),
			Mass:        store.Number(m.TotalMass()),
			Dielectric:  store.Number(md.Dielectric(set.Temperature)),
			DebyeLength: store.Number(m.DebyeLength()),
			TimeStep:    md.TimeStep,
		},
		Results: resultsView{
			Rg: s.view(res.rg), Ree: s.view(res.ree),
			Nu: store.Number(res.scaling.Nu), NuSE: store.Number(res.nuSE), R0: store.Number(res.scaling.R0), Misfit: store.Number(res.scaling.Misfit),
			Temperature: s.view(res.kinetic),
			Converged:   res.converged,
		},
		Performance: performanceView{
			StepsPerSecond: store.Number(math.Round(float64(res.steps) / res.busy.Seconds())),
			Wall:           store.Number(res.wall.Seconds()),
			Cores:          set.Cores,
		},
		Warnings: s.warnings(res),
		Cite:     []string{modelDOI},
	}
}

// Minimum lengths of a converged run. A run that is too short for its chain samples the
// slow motions too poorly to reveal this in its own statistics.
const (
	leastSamplesEach      = 20 // independent samples of Rg per replica, expected for a typical chain
	minEquilibrationTimes = 3  // equilibration per replica, in integrated autocorrelation times
)

// isConverged reports whether Rg and Ree of a complete run have converged.
func (s *system) isConverged(rg, ree md.Estimate) bool {
	expected := s.settings.expectedSamples(&s.Sequence)
	forgotten := minEquilibrationTimes * max(rg.Time, ree.Time) * float64(s.plan.sampleEvery)
	return rg.Converged() && ree.Converged() && float64(s.plan.discarded) >= forgotten &&
		expected >= md.MinIndependent && expected >= leastSamplesEach*float64(s.settings.Replicas)
}

// warnings returns the warnings about the settings and the results.
func (s *system) warnings(res *results) []string {
	texts := append([]string{}, s.Warnings...)
	if res.scaling.Misfit > md.MaxMisfit {
		texts = append(texts, fmt.Sprintf("distances along the chain do not follow a power law (deviation %.0f %%): nu is unreliable or omitted",
			100*res.scaling.Misfit))
	}
	if res.complete && !res.converged {
		texts = append(texts, "Rg is not converged: "+s.remedy(res)+" before relying on it; errors include half the difference between the two halves of the run")
	}
	return texts
}

// remedy returns advice on how to make the run converge.
func (s *system) remedy(res *results) string {
	time := max(res.rg.Time, res.ree.Time)
	if each := leastSamplesEach * stepsPerSample * float64(s.model.Size()); s.settings.Replicas > 1 &&
		(min(res.rg.Shortest, res.ree.Shortest) < md.MinAutocorrelationTimes*time || float64(s.plan.steps-s.plan.discarded) < each) {
		return "run more steps in each replica"
	}
	return "run more steps or replicas"
}
