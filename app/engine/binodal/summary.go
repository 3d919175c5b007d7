package binodal

import (
	"fmt"
	"math"

	"molrun/app/engine/store"
)

// The format of summary.json.
type (
	summary struct {
		Engine        string       `json:"engine"`
		EngineVersion string       `json:"engine_version"`
		Molrun        string       `json:"molrun_version"`
		Input         string       `json:"input_sha256"` // hash of settings and points
		Settings      settingsView `json:"settings"`
		System        systemView   `json:"system"`
		Over          Kind         `json:"over"`
		Points        []pointView  `json:"points"`
		Used          int          `json:"points_used"`
		Critical      criticalView `json:"critical"`
		Warnings      []string     `json:"warnings"`
		Cite          []string     `json:"cite"`
	}
	settingsView struct {
		Unconverged bool `json:"use_unconverged"`
	}
	systemView struct {
		Model          string        `json:"model"`
		Sequence       string        `json:"sequence"`
		PH             float64       `json:"pH"`
		ChargedTermini bool          `json:"charged_termini"`
		Temperature    *store.Figure `json:"temperature_K,omitempty"`    // if equal for all points
		IonicStrength  *store.Figure `json:"ionic_strength_M,omitempty"` // if equal for all points
	}
	pointView struct {
		Job           string       `json:"job"`
		Temperature   float64      `json:"temperature_K"`
		IonicStrength float64      `json:"ionic_strength_M"`
		Condensed     *bool        `json:"condensed"` // null if undecided; see reason
		Converged     bool         `json:"converged"`
		Used          bool         `json:"used"`
		Note          string       `json:"note,omitempty"`
		Reason        string       `json:"reason,omitempty"`
		Dense         store.Figure `json:"cden_mg_mL"`
		DenseSE       store.Figure `json:"cden_se_mg_mL"`
		Dilute        store.Figure `json:"cdil_mg_mL"`
		DiluteSE      store.Figure `json:"cdil_se_mg_mL"`
		Below         store.Figure `json:"cdil_below_mg_mL"`
		Transfer      store.Figure `json:"dG_kT"`
		TransferSE    store.Figure `json:"dG_se_kT"`
		TransferBelow store.Figure `json:"dG_below_kT"`
	}
	criticalView struct {
		Reason       string       `json:"reason,omitempty"` // why there is no critical point
		Temperature  levelView    `json:"Tc_K"`
		Density      levelView    `json:"rhoc_mg_mL"`
		Above        store.Figure `json:"Tc_above_K"` // highest temperature with a condensate
		Below        store.Figure `json:"Tc_below_K"` // lowest temperature without a condensate
		Extrapolated store.Figure `json:"extrapolated_K"`
		Far          bool         `json:"far_extrapolation"`
		Exponent     float64      `json:"exponent"`
		Width        levelView    `json:"width_mg_mL"`
		Slope        levelView    `json:"diameter_slope_mg_mL_K"`
		Free         int          `json:"degrees_of_freedom"`
		WidthChi2    store.Figure `json:"width_chi2"`
		DiameterChi2 store.Figure `json:"diameter_chi2"`
		WidthScale   store.Figure `json:"width_error_factor"`
		DiaScale     store.Figure `json:"diameter_error_factor"`
	}
	levelView struct {
		Mean store.Figure `json:"mean"`
		SE   store.Figure `json:"se"`
	}
)

func (l Concentration) view() levelView { return levelView{store.Figure(l.Mean), store.Figure(l.SE)} }

func (v *Result) summary(s *Settings, origin store.Origin) *summary {
	used, _ := v.count()
	first := &v.Series.Points[0]
	sum := &summary{
		Engine: engineName, EngineVersion: engineVersion, Molrun: origin.Version(), Input: origin.Hex(), Settings: settingsView{s.Unconverged},
		System: systemView{Model: first.same.model, Sequence: first.same.sequence, PH: first.same.pH, ChargedTermini: first.same.chargedTermini},
		Over:   v.Series.Kind, Used: used, Critical: v.critical(),
		Warnings: append([]string{}, v.Warnings...), Cite: []string{exponentDOI, protocolDOI},
	}
	temperature, salt := store.Figure(first.Temperature), store.Figure(first.IonicStrength)
	if v.Series.Kind == OverIonicStrength {
		sum.System.Temperature = &temperature
	} else {
		sum.System.IonicStrength = &salt
	}
	for i := range v.Series.Points {
		p, c := &v.Series.Points[i], v.Choices[i]
		sum.Points = append(sum.Points, pointView{
			p.Job, p.Temperature, p.IonicStrength, p.Condensed, p.Converged, c.Used, c.Note, p.Reason,
			store.Figure(p.Dense.Mean), store.Figure(p.Dense.SE), store.Figure(p.Dilute.Mean), store.Figure(p.Dilute.SE), store.Figure(p.Below),
			store.Figure(p.Transfer.Mean), store.Figure(p.Transfer.SE), store.Figure(p.TransferBelow),
		})
	}
	return sum
}

func (v *Result) critical() criticalView {
	l := v.Law
	if l == nil {
		n := Concentration{math.NaN(), math.NaN()}
		l = &Law{n, n, n, n, n.SE, n.SE, 0, n.SE, n.SE, nil}
	}
	return criticalView{
		v.Reason, l.Tc.view(), l.Rhoc.view(), store.Figure(v.Above), store.Figure(v.Below), store.Figure(v.extrapolated()), v.isFarExtrapolation(),
		beta, l.Width.view(), l.Slope.view(), l.Free,
		store.Figure(l.WidthChi2), store.Figure(l.DiameterChi2), store.Figure(l.WidthScale), store.Figure(l.DiameterScale),
	}
}

// metrics is the format of metrics.json. Unknown values are null.
type metrics struct {
	Over         Kind         `json:"over"`
	Tc           store.Figure `json:"Tc_K"`
	TcSE         store.Figure `json:"Tc_se_K"`
	Density      store.Figure `json:"rhoc_mg_mL"`
	DensitySE    store.Figure `json:"rhoc_se_mg_mL"`
	Above        store.Figure `json:"Tc_above_K"`
	Below        store.Figure `json:"Tc_below_K"`
	Extrapolated store.Figure `json:"extrapolated_K"`
	Far          *bool        `json:"far_extrapolation"` // null if there is no Tc
	Width        store.Figure `json:"width_mg_mL"`
	WidthSE      store.Figure `json:"width_se_mg_mL"`
	Slope        store.Figure `json:"diameter_slope_mg_mL_K"`
	SlopeSE      store.Figure `json:"diameter_slope_se_mg_mL_K"`
	Chi2         store.Figure `json:"chi2_per_dof"` // of the width fit
	Points       int          `json:"points"`
	Used         int          `json:"points_used"`
	Unconverged  int          `json:"points_used_unconverged"`
}

func (v *Result) metrics() metrics {
	c := v.critical()
	m := metrics{
		v.Series.Kind, c.Temperature.Mean, c.Temperature.SE, c.Density.Mean, c.Density.SE, c.Above, c.Below, c.Extrapolated, nil,
		c.Width.Mean, c.Width.SE, c.Slope.Mean, c.Slope.SE, c.WidthChi2 / store.Figure(c.Free), len(v.Series.Points), 0, 0,
	}
	m.Used, m.Unconverged = v.count()
	if v.Law != nil {
		m.Far = &c.Far
	}
	return m
}

// sentences returns a textual summary of the results.
func (v *Result) sentences() []string {
	lines := []string{fmt.Sprintf("%d points, %d used", len(v.Series.Points), v.metrics().Used)}
	for i, c := range v.Choices {
		if c.Note != "" {
			lines = append(lines, v.Series.Points[i].Job+": "+c.Note)
		}
	}
	if l := v.Law; l != nil {
		line := fmt.Sprintf("critical temperature %.1f±%.1f K, critical concentration ", l.Tc.Mean, l.Tc.SE)
		if math.IsNaN(l.Rhoc.Mean) {
			return append(lines, line+"unknown")
		}
		return append(lines, line+fmt.Sprintf("%.3g±%.2g mg/mL", l.Rhoc.Mean, l.Rhoc.SE))
	}
	return append(lines, "no critical temperature: "+v.Reason)
}
