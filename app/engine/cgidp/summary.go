package cgidp

import (
	"fmt"
	"math"
	"time"
)

// results are what a chain has shown so far.
type results struct {
	complete         bool
	rg, ree, kinetic estimate
	pairs            *pairSums
	rms              []float64
	scaling          scaling
	steps            int64         // of all replicas
	busy             time.Duration // of all replicas
}

// results pools the replicas.
func (c *chain) results() results {
	res := results{complete: c.complete(), pairs: newPairSums(c.model.size())}
	var rg, ree, kinetic []*series
	for _, r := range c.running() {
		r.Lock()
		a, b, k := r.rg, r.ree, r.kinetic
		rg, ree, kinetic = append(rg, &a), append(ree, &b), append(kinetic, &k)
		res.steps += r.step
		res.busy += r.busy
		r.Unlock()
	}
	res.rg, res.ree, res.kinetic = pool(rg), pool(ree), pool(kinetic)
	c.addPairs(res.pairs)
	res.rms = res.pairs.rms()
	res.scaling = fitScaling(res.rms)
	return res
}

// addPairs adds the pairs of all replicas, finished or not.
func (c *chain) addPairs(sums *pairSums) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums.merge(c.total)
	for _, r := range c.replicas[c.merged:] {
		if r != nil {
			r.Lock()
			sums.merge(r.pairs)
			r.Unlock()
		}
	}
}

func (res *results) converged() bool { return res.complete && res.rg.converged() }

// stepsPerSecond is the speed of one core.
func (res *results) stepsPerSecond() float64 {
	return float64(res.steps) / res.busy.Seconds()
}

// warnings are those of the settings and of the results.
func (c *chain) warnings(res results) []string {
	texts := append([]string{}, c.Warnings...)
	if res.scaling.misfit > maxMisfit {
		texts = append(texts, fmt.Sprintf("distances along the chain are no power law (off by %.0f %%): nu means little here",
			100*res.scaling.misfit))
	}
	if res.complete && !res.rg.converged() {
		texts = append(texts, "Rg is not converged: take more steps or replicas before relying on it")
	}
	return texts
}

// The types below are the form of summary.json.
type (
	summary struct {
		Engine        string          `json:"engine"`
		EngineVersion string          `json:"engine_version"`
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
		NetCharge   number `json:"net_charge"`
		Mass        number `json:"mass_Da"`
		Dielectric  number `json:"dielectric"`
		DebyeLength number `json:"debye_length_nm"`
	}
	resultsView struct {
		Rg          estimateView `json:"rg_nm"`
		Ree         estimateView `json:"ree_nm"`
		Nu          number       `json:"nu"`
		R0          number       `json:"R0_nm"`
		Misfit      number       `json:"nu_fit_relative_rms"`
		Temperature estimateView `json:"temperature_K"`
		Converged   bool         `json:"converged"`
	}
	estimateView struct {
		Mean        number `json:"mean"`
		SE          number `json:"se"`
		SD          number `json:"sd"`
		Independent number `json:"n_eff"`
	}
	performanceView struct {
		StepsPerSecond number `json:"steps_per_second"` // of one core
		Wall           number `json:"wall_s"`
		Cores          int    `json:"cores"`
	}
)

func (e estimate) view() estimateView {
	return estimateView{number(e.mean), number(e.se), number(e.sd), number(math.Round(e.independent))}
}

func (c *chain) summary(res results) summary {
	m, s := c.model, c.settings
	return summary{
		Engine:        engineName,
		EngineVersion: engineVersion,
		Model:         modelName,
		Name:          c.Name,
		Sequence:      c.Residues,
		Residues:      m.size(),
		Complete:      res.complete,
		Settings: settingsView{
			s.Temperature, s.PH, s.IonicStrength, c.Steps, s.Equilibration, s.Replicas, s.Seed,
			c.FrameEvery, s.SampleEvery, s.Friction, s.ChargedTermini,
		},
		Derived: derivedView{
			NetCharge:   number(m.netCharge()),
			Mass:        number(m.totalMass()),
			Dielectric:  number(dielectric(s.Temperature)),
			DebyeLength: number(1 / m.kappa),
		},
		Results: resultsView{
			Rg: res.rg.view(), Ree: res.ree.view(),
			Nu: number(res.scaling.nu), R0: number(res.scaling.r0), Misfit: number(res.scaling.misfit),
			Temperature: res.kinetic.view(),
			Converged:   res.converged(),
		},
		Performance: c.performance(res),
		Warnings:    c.warnings(res),
		Cite:        []string{modelDOI},
	}
}

func (c *chain) performance(res results) performanceView {
	c.mu.Lock()
	defer c.mu.Unlock()
	return performanceView{number(math.Round(res.stepsPerSecond())), number(c.wall.Seconds()), c.settings.Cores}
}
