package condensate

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
		Complete      bool            `json:"complete"`
		Settings      settingsView    `json:"settings"`
		Derived       derivedView     `json:"derived"`
		Results       resultsView     `json:"results"`
		Performance   performanceView `json:"performance"`
		Warnings      []string        `json:"warnings"`
		Cite          []string        `json:"cite"`

		phases Phases
	}
	settingsView struct {
		Components     []componentView `json:"components"`
		Protocol       Protocol        `json:"protocol"`
		Box            []store.Figure  `json:"box_nm"`
		Temperature    float64         `json:"temperature_K"`
		PH             float64         `json:"pH"`
		IonicStrength  float64         `json:"ionic_strength_M"`
		Steps          int64           `json:"steps"`
		Equilibration  float64         `json:"equilibration"`
		Replicas       int             `json:"replicas"`
		Seed           uint64          `json:"seed"`
		FrameEvery     int64           `json:"frame_every"`
		SampleEvery    int64           `json:"sample_every"`
		Friction       float64         `json:"friction_per_ps"`
		ChargedTermini bool            `json:"charged_termini"`
	}
	componentView struct {
		Name     string `json:"name"`
		Sequence string `json:"sequence"`
		Copies   int    `json:"copies"`
	}
	derivedView struct {
		Chains        int          `json:"chains"`
		Beads         int          `json:"residues"`
		Concentration store.Figure `json:"mean_concentration_mg_mL"`
		DebyeLength   store.Figure `json:"debye_length_nm"`
		TimeStep      store.Figure `json:"time_step_ps"`
		LeastDilute   store.Figure `json:"least_dilute_mM"` // below this, only an upper bound can be determined
	}
	resultsView struct {
		Condensed   *bool        `json:"condensed"` // null if not requested, not yet known, or undecided; see Reason
		Reason      string       `json:"reason,omitempty"`
		Slab        *slabView    `json:"slab,omitempty"`
		Components  []resultView `json:"components"`
		Bound       estimateView `json:"bound_fraction"`
		Largest     estimateView `json:"largest_cluster_fraction"`
		Pair        *pairView    `json:"pair,omitempty"`
		Temperature estimateView `json:"temperature_K"`
		Converged   bool         `json:"converged"`
	}
	slabView struct {
		Lower         store.Figure `json:"lower_interface_nm"`
		Upper         store.Figure `json:"upper_interface_nm"`
		LowerWidth    store.Figure `json:"lower_width_nm"`
		UpperWidth    store.Figure `json:"upper_width_nm"`
		DenseMass     store.Figure `json:"cden_mg_mL"` // of all components
		DiluteMass    store.Figure `json:"cdil_mg_mL"`
		DiluteIsBound bool         `json:"cdil_is_upper_bound"`
	}
	resultView struct {
		Name   string       `json:"name"`
		Rg     estimateView `json:"rg_nm"`
		Phases *phasesView  `json:"phases,omitempty"`
	}
	phasesView struct {
		Dense         estimateView `json:"cden_mM"`
		Dilute        estimateView `json:"cdil_mM"` // unknown if there is only a bound
		Bound         store.Figure `json:"cdil_below_mM"`
		DenseMass     store.Figure `json:"cden_mg_mL"`
		DenseMassSE   store.Figure `json:"cden_se_mg_mL"`
		DiluteMass    store.Figure `json:"cdil_mg_mL"`
		DiluteMassSE  store.Figure `json:"cdil_se_mg_mL"`
		BoundMass     store.Figure `json:"cdil_below_mg_mL"`
		Transfer      energyView   `json:"dG_transfer"`
		TransferBound energyView   `json:"dG_transfer_below"`
		RgDense       estimateView `json:"rg_dense_nm"`
		RgDilute      estimateView `json:"rg_dilute_nm"`
	}
	energyView struct {
		KT     store.Figure `json:"kT"`
		KTSE   store.Figure `json:"kT_se"`
		Joules store.Figure `json:"kJ_mol"`
		Cals   store.Figure `json:"kcal_mol"`
	}
	pairView struct {
		Virial         store.Figure `json:"b22_nm3"`
		VirialSE       store.Figure `json:"b22_se_nm3"`
		VirialMass     store.Figure `json:"b22_mL_mol_g2"`
		VirialMassSE   store.Figure `json:"b22_se_mL_mol_g2"`
		Dissociation   store.Figure `json:"kd_mM"`
		DissociationSE store.Figure `json:"kd_se_mM"`
	}
	estimateView struct {
		Mean        store.Figure `json:"mean"`
		SE          store.Figure `json:"se"`
		SD          store.Figure `json:"sd"`
		Independent store.Figure `json:"n_eff"`
		Time        store.Figure `json:"integrated_autocorrelation_time_ns"`
	}
	performanceView struct {
		StepsPerSecond store.Figure `json:"steps_per_second"`
		NanosecondsDay store.Figure `json:"ns_per_day"`
		Wall           store.Figure `json:"wall_s"`
		Cores          int          `json:"cores"`
	}
)

func (y *system) view(e md.Estimate) estimateView {
	return estimateView{
		store.Figure(e.Mean), store.Figure(e.SE), store.Figure(e.SD), store.Figure(math.Round(e.Independent)),
		store.Figure(e.Time * float64(y.plan.sampleEvery) * md.TimeStep / 1000),
	}
}

const calorie = 4.184 // J

// energy converts a free energy from kT.
func (y *system) energy(kT, se float64) energyView {
	joules := kT * y.mix.Components[0].Model.KT()
	return energyView{store.Figure(kT), store.Figure(se), store.Figure(joules), store.Figure(joules / calorie)}
}

// summary evaluates the results of the replicas so far.
func (r *results) summary(complete bool) *summary {
	steps, seconds := int64(0), 0.0
	for _, rep := range r.replicas {
		steps, seconds = steps+rep.Step(), seconds+rep.Busy.Seconds()
	}
	speed := float64(steps) / seconds
	s := &summary{
		Engine:        engineName,
		EngineVersion: engineVersion,
		Molrun:        r.origin().Version(),
		Input:         r.origin().Hex(),
		Model:         modelName,
		Complete:      complete,
		Settings:      r.settingsView(),
		Derived: derivedView{
			Chains: r.mix.Chains(), Beads: r.mix.Size(),
			Concentration: store.Figure(r.mass() / (r.Box.X * r.Box.Y * r.Box.Z) * milligramsPerMillilitre),
			DebyeLength:   store.Figure(r.mix.Components[0].Model.DebyeLength()),
			TimeStep:      md.TimeStep,
			LeastDilute:   store.Figure(math.NaN()),
		},
		Performance: performanceView{
			StepsPerSecond: store.Figure(speed),
			NanosecondsDay: store.Figure(nanosecondsPerDay(speed)),
			Wall:           store.Figure(seconds),
			Cores:          r.Cores,
		},
		Warnings: append([]string{}, r.Warnings...),
		Cite:     []string{modelDOI, protocolDOI},
	}
	r.evaluate(s)
	return s
}

func (r *results) settingsView() settingsView {
	s := r.Settings
	v := settingsView{
		nil, s.Protocol,
		[]store.Figure{store.Figure(s.Box.X), store.Figure(s.Box.Y), store.Figure(s.Box.Z)},
		s.Conditions.Temperature, s.Conditions.PH, s.Conditions.IonicStrength, s.Steps, s.Equilibration, s.Replicas, s.Seed,
		s.FrameEvery, s.SampleEvery, s.Conditions.Friction, s.Conditions.ChargedTermini,
	}
	for _, c := range s.Components {
		v.Components = append(v.Components, componentView{c.Name, c.Residues, c.Copies})
	}
	return v
}

// nanosecondsPerDay returns the speed in simulated time, which is not physical time.
func nanosecondsPerDay(stepsPerSecond float64) float64 {
	return stepsPerSecond * md.TimeStep / 1000 * 86400
}

// pooled pools a series over the replicas that have samples.
func (r *results) pooled(of func(*replica) md.Series) md.Estimate {
	var all []md.Series
	for _, rep := range r.replicas {
		if s := of(rep); s.Count() > 0 {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return unknown
	}
	return md.Pool(all)
}

// estimates are means over the run and all chains.
type estimates struct {
	bound, largest, temperature, near md.Estimate
	radius                            []md.Estimate // radius of gyration, by component
}

func (r *results) estimates() *estimates {
	e := &estimates{
		bound:       r.pooled(func(rep *replica) md.Series { return rep.bound }),
		largest:     r.pooled(func(rep *replica) md.Series { return rep.largest }),
		temperature: r.pooled(func(rep *replica) md.Series { return rep.temperature }),
		near:        r.pooled(func(rep *replica) md.Series { return rep.near }),
	}
	for k := range r.Components {
		e.radius = append(e.radius, r.pooled(func(rep *replica) md.Series { return rep.radius[k] }))
	}
	return e
}

// converged reports whether the sizes of the chains have converged and, unless there are
// phases, whether their clusters have.
func (e *estimates) converged(r *results) bool {
	for _, radius := range e.radius {
		if !radius.Converged() {
			return false
		}
	}
	switch {
	case r.Protocol == Slab:
		return true
	case r.isPair():
		return e.bound.Converged() && e.near.Converged()
	}
	return steady(e.bound) && steady(e.largest)
}

// widen widens the errors to those of a run that has not converged.
func (e *estimates) widen() {
	for _, one := range []*md.Estimate{&e.bound, &e.largest, &e.temperature, &e.near} {
		*one = one.Widened()
	}
	for k := range e.radius {
		e.radius[k] = e.radius[k].Widened()
	}
}

func (r *results) evaluate(s *summary) {
	res, e := &s.Results, r.estimates()
	settled := e.converged(r)
	if r.Protocol == Slab {
		s.Derived.LeastDilute = store.Figure(r.minDiluteConcentration())
		settled = r.findPhases(s, settled)
	}
	if res.Converged = s.Complete && settled; !res.Converged {
		e.widen()
	}
	res.Bound, res.Largest, res.Temperature = r.view(e.bound), r.view(e.largest), r.view(e.temperature)
	for k, c := range r.Components {
		res.Components = append(res.Components, resultView{Name: c.Name, Rg: r.view(e.radius[k])})
	}
	if res.Condensed != nil && *res.Condensed {
		r.addPhases(s)
	}
	if r.isPair() {
		b, k := r.virial(e.near), r.dissociation(e.bound)
		per := r.perMass()
		res.Pair = &pairView{
			store.Figure(b.value), store.Figure(b.se), store.Figure(b.value * per), store.Figure(b.se * per),
			store.Figure(k.value), store.Figure(k.se),
		}
	}
	if s.Complete && !res.Converged {
		s.Warnings = append(s.Warnings, "the results are not converged: run more steps or replicas before relying on them; errors include half the difference between the two halves of the run")
	}
}

// findPhases evaluates the slab and reports whether its concentrations have converged or,
// if the profile is flat, whether the sizes of the chains have. Only a converged flat
// profile shows that chains do not condense.
func (r *results) findPhases(s *summary, sizes bool) bool {
	all, evaluated := r.profiles()
	if len(all) == 0 || !evaluated {
		return false
	}
	s.phases = Evaluate(all)
	res, f := &s.Results, &s.phases
	res.Reason = f.Reason
	if f.Undecided {
		return false
	}
	// Until chains have had time to leave the slab, finding none outside is meaningless.
	settled := !r.tooShort()
	if !f.Separated {
		if settled = settled && sizes; !settled || !s.Complete {
			res.Reason = "not converged: " + f.Reason + " so far"
			return false
		}
		res.Condensed = &f.Separated
		return true
	}
	res.Condensed = &f.Separated
	for _, c := range f.Components {
		settled = settled && steady(c.Dense) && (c.Bound || steady(c.Dilute))
	}
	return settled
}

// addPhases adds the phases to the summary.
func (r *results) addPhases(s *summary) {
	res, f := &s.Results, &s.phases
	v := &slabView{
		Lower: store.Figure(f.Lower.Z), Upper: store.Figure(f.Upper.Z),
		LowerWidth: store.Figure(f.Lower.Width), UpperWidth: store.Figure(f.Upper.Width),
	}
	res.Slab = v
	for k, c := range f.Components {
		p := r.phasesView(k, f, res.Converged)
		res.Components[k].Phases = p
		v.DenseMass += p.DenseMass
		if c.Bound {
			v.DiluteMass += p.BoundMass
		} else {
			v.DiluteMass += p.DiluteMass
		}
		v.DiluteIsBound = v.DiluteIsBound || c.Bound
	}
}

// bound returns v, an upper bound on a concentration or an energy, or NaN if chains have
// not had time to leave the slab.
func (r *results) bound(v float64) float64 {
	if r.tooShort() {
		return math.NaN()
	}
	return v
}

// steady reports whether there are enough independent observations, and the replicas and
// the halves of the run agree within errors.
func steady(e md.Estimate) bool { return e.Steady(AssumedSamples) }

// milligrams returns the concentration in mg/mL of 1 mM of a component.
func (r *results) milligrams(k int) float64 { return r.mix.Components[k].Model.TotalMass() / 1000 }

func (r *results) phasesView(k int, f *Phases, converged bool) *phasesView {
	c := f.Components[k]
	view := func(e md.Estimate) estimateView { return r.view(e) }
	if !converged {
		c = c.widened()
		view = func(e md.Estimate) estimateView { return r.view(e.Widened()) }
	}
	var sizes []*sizes
	for _, rep := range r.replicas {
		sizes = append(sizes, rep.sizes)
	}
	dilute, below := c.Dilute, math.NaN()
	transfer, transferBelow := r.energy(c.Transfer, c.TransferSE), r.energy(math.NaN(), math.NaN())
	if c.Bound {
		dilute, below = unknown, r.bound(c.Dilute.Mean)
		transfer, transferBelow = transferBelow, r.energy(r.bound(c.Transfer), c.TransferSE)
	}
	mass := r.milligrams(k)
	number := func(v float64) store.Figure { return store.Figure(v * mass) }
	return &phasesView{
		Dense: r.view(c.Dense), Dilute: r.view(dilute), Bound: store.Figure(below),
		DenseMass: number(c.Dense.Mean), DenseMassSE: number(c.Dense.SE),
		DiluteMass: number(dilute.Mean), DiluteMassSE: number(dilute.SE), BoundMass: number(below),
		Transfer: transfer, TransferBound: transferBelow,
		RgDense:  view(meanSize(sizes, k, f.Dense)),
		RgDilute: view(meanSize(sizes, k, f.Dilute)),
	}
}

// sentences returns a textual summary of the results.
func (s *summary) sentences() []string {
	var lines []string
	res, doubt := &s.Results, ""
	if !res.Converged {
		doubt = " (not converged)"
	}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)+doubt) }
	switch {
	case res.Condensed != nil && !*res.Condensed:
		add("the chains do not condense under these conditions: %s", res.Reason)
	case res.Condensed == nil && res.Reason != "":
		add("undecided whether the chains condense: %s", res.Reason)
	}
	for _, c := range res.Components {
		rg := store.WithError(float64(c.Rg.Mean), float64(c.Rg.SE))
		p := c.Phases
		switch {
		case p == nil:
			add("%s: Rg %s nm", c.Name, rg)
		case math.IsNaN(float64(p.Dilute.Mean)) && math.IsNaN(float64(p.Bound)):
			add("%s: dense %s mM (%.3g mg/mL), dilute unknown: the run is too short for chains to leave the slab", c.Name,
				store.WithError(float64(p.Dense.Mean), float64(p.Dense.SE)), float64(p.DenseMass))
		case math.IsNaN(float64(p.Dilute.Mean)):
			add("%s: dense %s mM (%.3g mg/mL), dilute below %.2g mM, transfer below %.2f kT", c.Name,
				store.WithError(float64(p.Dense.Mean), float64(p.Dense.SE)), float64(p.DenseMass), float64(p.Bound), float64(p.TransferBound.KT))
		default:
			add("%s: dense %s mM (%.3g mg/mL), dilute %s mM (%.3g mg/mL), transfer %.2f±%.2f kT", c.Name,
				store.WithError(float64(p.Dense.Mean), float64(p.Dense.SE)), float64(p.DenseMass),
				store.WithError(float64(p.Dilute.Mean), float64(p.Dilute.SE)), float64(p.DiluteMass), float64(p.Transfer.KT), float64(p.Transfer.KTSE))
		}
	}
	if p := res.Pair; p != nil {
		add("second virial coefficient %s (%s), dissociation constant %s", formatKnown(p.Virial, p.VirialSE, "nm³"),
			formatKnown(p.VirialMass, p.VirialMassSE, "mL mol/g²"), formatKnown(p.Dissociation, p.DissociationSE, "mM"))
	}
	return lines
}

// formatKnown formats a number with its error and unit, if they are known.
func formatKnown(v, se store.Figure, unit string) string {
	switch {
	case math.IsNaN(float64(v)):
		return "unknown"
	case math.IsNaN(float64(se)):
		return fmt.Sprintf("%.4g %s", float64(v), unit)
	}
	return fmt.Sprintf("%.4g±%.2g %s", float64(v), float64(se), unit)
}
