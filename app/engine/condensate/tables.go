package condensate

import (
	"strconv"
	"strings"

	"molrun/app/engine/store"
)

// metrics is the format of metrics.json, which is used to compare jobs. If there is only
// one component, its metrics are at the top level.
type metrics struct {
	Condensed      *bool        `json:"condensed"`
	Reason         string       `json:"condensed_reason,omitempty"` // short; empty if condensed is true
	Interface      store.Figure `json:"interface_width_nm"`
	DenseMass      store.Figure `json:"cden_mg_mL"`
	DiluteMass     store.Figure `json:"cdil_mg_mL"`
	Bound          store.Figure `json:"bound_fraction"`
	Largest        store.Figure `json:"largest_cluster_fraction"`
	Converged      bool         `json:"converged"`
	StepsPerSecond store.Figure `json:"steps_per_second"`
	NanosecondsDay store.Figure `json:"ns_per_day"`
	*componentMetrics
	Virial         *store.Figure               `json:"b22_nm3,omitempty"`
	VirialSE       *store.Figure               `json:"b22_se_nm3,omitempty"`
	VirialMass     *store.Figure               `json:"b22_mL_mol_g2,omitempty"`
	VirialMassSE   *store.Figure               `json:"b22_se_mL_mol_g2,omitempty"`
	Dissociation   *store.Figure               `json:"kd_mM,omitempty"`
	DissociationSE *store.Figure               `json:"kd_se_mM,omitempty"`
	Components     map[string]componentMetrics `json:"components,omitempty"`
}

type componentMetrics struct {
	Dense      store.Figure `json:"cden_mM"`
	DenseSE    store.Figure `json:"cden_se_mM"`
	Dilute     store.Figure `json:"cdil_mM"`
	DiluteSE   store.Figure `json:"cdil_se_mM"`
	Below      store.Figure `json:"cdil_below_mM"`
	Transfer   store.Figure `json:"dG_kT"`
	TransferSE store.Figure `json:"dG_se_kT"`
	Rg         store.Figure `json:"rg_nm"`
	RgSE       store.Figure `json:"rg_se_nm"`
	RgDense    store.Figure `json:"rg_dense_nm"`
	RgDilute   store.Figure `json:"rg_dilute_nm"`
}

// metrics returns the metrics of a component; unknown ones are null.
func (v *resultView) metrics() componentMetrics {
	unknown := store.Figure(unknown.Mean)
	m := componentMetrics{unknown, unknown, unknown, unknown, unknown, unknown, unknown, v.Rg.Mean, v.Rg.SE, unknown, unknown}
	if p := v.Phases; p != nil {
		m.Dense, m.DenseSE, m.Dilute, m.DiluteSE, m.Below = p.Dense.Mean, p.Dense.SE, p.Dilute.Mean, p.Dilute.SE, p.Bound
		m.Transfer, m.TransferSE = p.Transfer.KT, p.Transfer.KTSE
		m.RgDense, m.RgDilute = p.RgDense.Mean, p.RgDilute.Mean
	}
	return m
}

func (s *summary) metrics() metrics {
	res, unknown := &s.Results, store.Figure(unknown.Mean)
	m := metrics{
		Condensed: res.Condensed, Reason: res.shortReason(), Interface: unknown, DenseMass: unknown, DiluteMass: unknown,
		Bound: res.Bound.Mean, Largest: res.Largest.Mean, Converged: res.Converged,
		StepsPerSecond: s.Performance.StepsPerSecond, NanosecondsDay: s.Performance.NanosecondsDay,
	}
	if v := res.Slab; v != nil {
		m.Interface, m.DenseMass = (v.LowerWidth+v.UpperWidth)/2, v.DenseMass
		if !v.DiluteIsBound {
			m.DiluteMass = v.DiluteMass
		}
	}
	if p := res.Pair; p != nil {
		m.Virial, m.VirialSE, m.VirialMass, m.VirialMassSE = &p.Virial, &p.VirialSE, &p.VirialMass, &p.VirialMassSE
		m.Dissociation, m.DissociationSE = &p.Dissociation, &p.DissociationSE
	}
	if len(res.Components) == 1 {
		one := res.Components[0].metrics()
		m.componentMetrics = &one
		return m
	}
	m.Components = map[string]componentMetrics{}
	for k := range res.Components {
		m.Components[res.Components[k].Name] = res.Components[k].metrics()
	}
	return m
}

// shortReason returns the reason without numbers and recommendations, short enough for a
// table of jobs.
func (v *resultsView) shortReason() string {
	if end := strings.IndexAny(v.Reason, ":;,("); end >= 0 {
		return strings.TrimSpace(v.Reason[:end])
	}
	return v.Reason
}

// table returns components.csv: one row per component.
func (s *summary) table() [][]string {
	rows := [][]string{{
		"name", "n_residues", "copies", "cden_mM", "cden_se_mM", "cden_mg_mL", "cdil_mM", "cdil_se_mM", "cdil_mg_mL", "cdil_below_mM",
		"dG_kT", "dG_se_kT", "dG_kJ_mol", "dG_kcal_mol", "rg_nm", "rg_se_nm", "rg_dense_nm", "rg_dilute_nm", "converged",
	}}
	for k := range s.Results.Components {
		v, of := &s.Results.Components[k], s.Settings.Components[k]
		m := v.metrics()
		p := v.Phases
		if p == nil {
			n := store.Figure(unknown.Mean)
			p = &phasesView{DenseMass: n, DiluteMass: n, Transfer: energyView{n, n, n, n}}
		}
		row := []string{of.Name, strconv.Itoa(len(of.Sequence)), strconv.Itoa(of.Copies)}
		for _, n := range []store.Figure{
			m.Dense, m.DenseSE, p.DenseMass, m.Dilute, m.DiluteSE, p.DiluteMass, m.Below,
			m.Transfer, m.TransferSE, p.Transfer.Joules, p.Transfer.Cals, m.Rg, m.RgSE, m.RgDense, m.RgDilute,
		} {
			row = append(row, n.String())
		}
		rows = append(rows, append(row, strconv.FormatBool(s.Results.Converged)))
	}
	return rows
}
