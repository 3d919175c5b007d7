package results

import (
	"slices"
	"strconv"

	"molrun/app/base/tomltree"
)

// PLDDT says that the B factors of structures are pLDDTs, the confidence of predictions.
type PLDDT struct {
	Scale int       `json:"scale,omitempty"` // the highest that there can be, 1 or 100; 0: as the file has it
	Bands []float64 `json:"bands"`           // where its colours change, of 100, ascending
}

// usualBands are where AlphaFold's colours change.
var usualBands = []float64{50, 70, 90}

// readPLDDT reads plddt of a view, nil if it has none.
func readPLDDT(r *tomltree.Reader, view *tomltree.Node) *PLDDT {
	t := r.Table(view, "plddt")
	if t == nil {
		return nil
	}
	p := &PLDDT{Bands: usualBands}
	if n := t.Member("scale"); n != nil {
		if p.Scale, _ = strconv.Atoi(n.Text); p.Scale != 1 && p.Scale != 100 {
			r.Mistakef(n.Line, "scale must be 1 or 100, the highest pLDDT that there can be, got %s", n.Text)
		}
	}
	n := t.Member("bands")
	if n == nil {
		return p
	}
	p.Bands = nil
	for _, item := range n.Items {
		b, _ := strconv.ParseFloat(item.Text, 64)
		p.Bands = append(p.Bands, b)
	}
	if len(p.Bands) != len(usualBands) || !slices.IsSorted(p.Bands) || p.Bands[0] <= 0 || p.Bands[len(p.Bands)-1] >= 100 {
		r.Mistakef(n.Line, "bands must be three ascending numbers between 0 and 100, whatever the scale, such as [50, 70, 90]")
	}
	return p
}

// percent returns by what values are multiplied to be of 100, given the highest one.
func (p *PLDDT) percent(highest float64) float64 {
	if p != nil && (p.Scale == 1 || p.Scale == 0 && highest <= 1) {
		return 100
	}
	return 1
}

// TakeScales has the metrics that are B factors of a view's structures follow its scale.
func (all Metrics) TakeScales(views Views) {
	for i, m := range all {
		s, ok := m.source.(bFactorOf)
		if !ok {
			continue
		}
		for _, v := range views {
			if v.PLDDT != nil && v.matches.MatchString(s.path) {
				s.plddt = v.PLDDT
			}
		}
		all[i].source = s
	}
}
