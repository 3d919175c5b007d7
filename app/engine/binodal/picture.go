package binodal

import (
	"fmt"
	"math"

	"molrun/app/engine/plot"
)

// drawPlot plots the points and, if there is one, the law.
func (v *Result) drawPlot() ([]byte, error) {
	f := &plot.Binodal{Title: "Binodal", Axis: "temperature / K"}
	if v.Series.Kind == OverIonicStrength {
		f.Axis = "ionic strength / mol/L"
	}
	for i, c := range v.Choices {
		p := &v.Series.Points[i]
		one := plot.Coexistence{
			At: v.Series.at(p), Used: c.Used, Overall: math.NaN(),
			Dense: plot.Bar(p.Dense), Dilute: plot.Bar(p.Dilute), Below: p.Below,
			Transfer: plot.Bar(p.Transfer), TransferBelow: p.TransferBelow,
		}
		if !p.hasTwoPhases() {
			one.Overall, one.Undecided = p.Overall, p.Condensed == nil
		}
		f.Points = append(f.Points, one)
	}
	for _, c := range v.curve() {
		f.Law = append(f.Law, plot.LawPoint{At: c.temperature, Dense: c.dense, Dilute: c.dilute})
	}
	if l := v.Law; l != nil && len(f.Law) > 0 {
		f.Critical = &plot.Critical{At: plot.Bar(l.Tc), Density: plot.Bar(l.Rhoc)}
		f.Title = fmt.Sprintf("Binodal, Tc = %.1f ± %.1f K", l.Tc.Mean, l.Tc.SE)
	}
	return f.SVG()
}
