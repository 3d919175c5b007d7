package binodal

import (
	"math"
	"strconv"

	"molrun/app/engine/store"
)

// Factors that convert a free energy from kT to kJ/mol and kcal/mol.
const (
	gasConstant = 8.31446e-3 // kJ/(mol K)
	calorie     = 4.184      // J
)

// table returns binodal.csv: one row per point, in series order.
func (v *Result) table() [][]string {
	rows := [][]string{{
		"job", "temperature_K", "ionic_strength_M", "condensed", "converged", "used",
		"cdil_mg_mL", "cdil_se_mg_mL", "cdil_below_mg_mL", "cden_mg_mL", "cden_se_mg_mL",
		"cdil_mM", "cdil_se_mM", "cdil_below_mM", "cden_mM", "cden_se_mM",
		"dG_kT", "dG_se_kT", "dG_below_kT", "dG_kJ_mol", "dG_kcal_mol", "deviation", "note",
	}}
	used := 0
	for i, c := range v.Choices {
		p := &v.Series.Points[i]
		deviation := math.NaN()
		if c.Used && v.Law != nil {
			deviation = v.Law.Deviations[used]
			used++
		}
		condensed := ""
		if p.Condensed != nil {
			condensed = strconv.FormatBool(*p.Condensed)
		}
		row := []string{
			p.Job, store.Figure(p.Temperature).String(), store.Figure(p.IonicStrength).String(),
			condensed, strconv.FormatBool(p.Converged), strconv.FormatBool(c.Used),
		}
		joules := p.Transfer.Mean * gasConstant * p.Temperature
		row = append(row, figures(
			p.Dilute.Mean, p.Dilute.SE, p.Below, p.Dense.Mean, p.Dense.SE,
			p.DiluteMolar.Mean, p.DiluteMolar.SE, p.BelowMolar, p.DenseMolar.Mean, p.DenseMolar.SE,
			p.Transfer.Mean, p.Transfer.SE, p.TransferBelow, joules, joules/calorie, deviation,
		)...)
		rows = append(rows, append(row, c.Note))
	}
	return rows
}

// curvePoints is the number of points on the fitted coexistence curve.
const curvePoints = 101

// curveTable returns curve.csv: the fitted curve from the lowest temperature used up to
// Tc. Negative concentrations are left empty: the law does not hold there.
func (v *Result) curveTable() [][]string {
	rows := [][]string{{"temperature_K", "cdil_mg_mL", "cden_mg_mL", "diameter_mg_mL"}}
	for _, c := range v.curve() {
		rows = append(rows, figures(c.temperature, c.dilute, c.dense, (c.dense+c.dilute)/2))
		if last := rows[len(rows)-1]; c.dilute < 0 {
			last[1] = ""
		}
	}
	return rows
}

// coexisting is a point on the fitted coexistence curve.
type coexisting struct{ temperature, dense, dilute float64 }

// curve returns points on the fitted coexistence curve. It is nil if there is no fit or
// its critical concentration is unknown.
func (v *Result) curve() []coexisting {
	if v.Law == nil || math.IsNaN(v.Law.Rhoc.Mean) {
		return nil
	}
	lowest := math.NaN()
	for i, c := range v.Choices {
		if c.Used {
			lowest = v.Series.Points[i].Temperature
			break
		}
	}
	all := make([]coexisting, curvePoints)
	for k := range all {
		part := 1 - float64(k)/(curvePoints-1)
		at := v.Law.Tc.Mean - (v.Law.Tc.Mean-lowest)*part*part*part // denser near Tc, where the curve bends
		all[k].temperature = at
		all[k].dense, all[k].dilute = v.Law.Phases(at)
	}
	return all
}

func figures(values ...float64) []string {
	texts := make([]string, len(values))
	for k, value := range values {
		texts[k] = store.Figure(value).String()
	}
	return texts
}
