package binodal

import (
	"molrun/app/base/fault"
	"molrun/app/engine/input"
)

// MaxPoints is the maximum number of points.
const MaxPoints = 100

// Settings are complete, valid settings.
type Settings struct {
	Points      []string // references to summaries of cg-condensate, as given in the request
	Molrun      string   // version of molrun, for the results
	Unconverged bool     // include points that are not converged
}

const (
	pointsKey      = "points"
	unconvergedKey = "use_unconverged"
)

var keys = []string{pointsKey, unconvergedKey}

// Parse checks JSON settings, in which null means absent, and fills in defaults. It
// returns all validation errors at once; if there are none, the settings are not nil.
func Parse(settings []byte) (*Settings, []fault.Field) {
	r, wrong := input.NewReader(settings, keys)
	if wrong != nil {
		return nil, []fault.Field{*wrong}
	}
	s := &Settings{Unconverged: r.Boolean(unconvergedKey, false)}
	at := input.Loc(pointsKey)
	texts, list := r.Texts(pointsKey)
	switch {
	case !r.Has(pointsKey) || list && len(texts) == 0:
		r.Fault(at, input.Missing, `give points: the summaries of jobs of cg-condensate, such as ["job:slab-1/@summary", "job:slab-2/@summary"]`)
	case !list:
		r.Fault(at, input.Type, "points must be a list of files, not %s", input.KindOf(r.Raw(pointsKey)))
	case len(texts) > MaxPoints:
		r.Fault(at, input.Range, "there are %d points; at most %d are compared", len(texts), MaxPoints)
	}
	first := map[string]int{}
	for i, text := range texts {
		if text == nil {
			continue // already reported
		}
		if k, twice := first[*text]; twice {
			r.Fault(input.Loc(pointsKey, i), input.Conflict, "points %d and %d are both %q; give each once", k+1, i+1, *text)
			continue
		}
		first[*text] = i
		s.Points = append(s.Points, *text)
	}
	if len(r.Faults) > 0 {
		return nil, r.Faults
	}
	return s, nil
}
