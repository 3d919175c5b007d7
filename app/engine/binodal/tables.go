package binodal

import (
	"math"
	"strconv"

	"molrun/app/engine/store"
)

// Joules and calories for a free energy in kT.
const (
	gasConstant = 8.31446e-3 // kJ/(mol K)
	calorie     = 4.184      // J
)

// table is binodal.csv: a row for each point, in the order of the series.
func (v *Verdict) table() [][]string {
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

// curvePoints is how many points the curve of the law has.
const curvePoints = 101

// curveTable is curve.csv: the law from the lowest temperature that is used up to Tc. Where it
// would have a negative concentration, which shows that it does not hold there, there is none.
func (v *Verdict) curveTable() [][]string {
	rows := [][]string{{"temperature_K", "cdil_mg_mL", "cden_mg_mL", "diameter_mg_mL"}}
	for _, c := range v.curve() {
		rows = append(rows, figures(c.temperature, c.dilute, c.dense, (c.dense+c.dilute)/2))
		if last := rows[len(rows)-1]; c.dilute < 0 {
			last[1] = ""
		}
	}
	return rows
}

// coexisting is a place on the curve of the law.
type coexisting struct{ temperature, dense, dilute float64 }

// curve is the law; nil if there is none or its critical concentration is unknown.
func (v *Verdict) curve() []coexisting {
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
		at := v.Law.Tc.Mean - (v.Law.Tc.Mean-lowest)*part*part*part // closer where the curve turns
		all[k].temperature = at
		all[k].dense, all[k].dilute = v.Law.At(at)
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
