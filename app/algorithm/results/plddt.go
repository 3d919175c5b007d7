package results

import (
	"slices"
	"strconv"

	"molrun/app/base/tomltree"
)

// PLDDT marks the B factors of structures as pLDDT, the confidence of a prediction.
type PLDDT struct {
	Scale int       `json:"scale,omitempty"` // maximum possible pLDDT, 1 or 100; 0 means detect it from the file
	Bands []float64 `json:"bands"`           // color boundaries on a scale of 100, ascending
}

// usualBands are the color boundaries of AlphaFold.
var usualBands = []float64{50, 70, 90}

// readPLDDT reads the plddt table of a view, or nil if there is none.
func readPLDDT(r *tomltree.Reader, view *tomltree.Node) *PLDDT {
	t := r.Table(view, "plddt")
	if t == nil {
		return nil
	}
	p := &PLDDT{Bands: usualBands}
	if n := t.Member("scale"); n != nil {
		if p.Scale, _ = strconv.Atoi(n.Text); p.Scale != 1 && p.Scale != 100 {
			r.Errorf(n.Line, "scale must be the maximum possible pLDDT, 1 or 100, got %s", n.Text)
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
		r.Errorf(n.Line, "bands must be three ascending numbers between 0 and 100, whatever the scale, such as [50, 70, 90]")
	}
	return p
}

// percent returns the factor that converts values to a scale of 100, given the highest
// value.
func (p *PLDDT) percent(highest float64) float64 {
	if p != nil && (p.Scale == 1 || p.Scale == 0 && highest <= 1) {
		return 100
	}
	return 1
}

// ApplyScales applies the pLDDT scale of a view to the metrics that are B factors of its
// structures.
func (all Metrics) ApplyScales(views Views) {
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
