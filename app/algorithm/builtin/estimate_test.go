package builtin_test

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"molrun/app/algorithm/builtin"
	"molrun/app/base/strictjson"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

// pastRuns holds real runs of cg-idp in order of completion, on a machine with other
// load: the number of residues, the number of steps, and the run time in seconds.
// Residues and steps are spread evenly on a logarithmic scale.
//
//go:embed testdata/cg-idp-runs.csv
var pastRuns string

// TestEstimatesOfPastRuns estimates each run from the runs before it. The median error
// must not exceed 25%.
func TestEstimatesOfPastRuns(t *testing.T) {
	catalogue, err := builtin.Catalogue("", nil, nil)
	must.OK(t, err)
	cgidp, _ := catalogue.Find("cg-idp", "")
	var past []eta.Run
	var errors []float64
	for line := range strings.Lines(pastRuns) {
		var residues, steps int
		var seconds float64
		if _, err := fmt.Sscanf(line, "%d,%d,%f", &residues, &steps, &seconds); err != nil {
			continue // header
		}
		settings, err := strictjson.Parse(fmt.Appendf(nil, `{"sequences":[%q],"steps":%d,"replicas":1,"cores":1}`, strings.Repeat("G", residues), steps))
		must.OK(t, err)
		run := eta.Run{Size: cgidp.Size(settings, nil), Seconds: seconds}
		h := eta.NewHistory("any", past[max(0, len(past)-eta.MaxRuns):])
		if e := h.Estimate(run.Size); e.Known() {
			errors = append(errors, math.Abs(e.Seconds()/seconds-1))
		}
		past = append(past, run)
	}
	slices.Sort(errors)
	median := errors[len(errors)/2]
	t.Logf("median error of %d estimates: %.0f %%", len(errors), 100*median)
	if len(errors) < 200 || median > 0.25 {
		t.Errorf("the median error of %d estimates is %.2f", len(errors), median)
	}
}
