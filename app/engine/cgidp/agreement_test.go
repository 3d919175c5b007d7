package cgidp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// Length and equilibration of the runs. These and the numbers of runs are fixed in
// advance, so that the decision to stop cannot bias the result.
const (
	runStepsPerResidue = 50_000 // about 400 independent samples
	runEquilibration   = 0.05   // 2500 steps per residue, 20 to 60 autocorrelation times
	largestError       = 0.012  // relative, of the mean Rg
)

// plannedRuns gives the number of runs needed for an error of about 0.7 %. Proteins with
// slow relaxation need more.
var plannedRuns = map[string]int{
	"FCP1": 2, "NLS": 3, "TRF2_BR": 4, "MenVL": 3, "NWASPV": 4, "IB5": 3, "RpII215_CTD2": 3,
	"HeV_PNT3_CTD": 4, "Nup153_82": 3, "NUS": 4, "CP12ox": 3, "Sic1": 3, "lambdaN": 4,
}

// TestAgreement compares mean Rg with published CALVADOS 2 values (Tesei et al., Nature
// 2024, 626, 897). It takes a quarter of an hour on two cores, so it runs only if
// CGIDP_PHYSICS is set or CGIDP_AGREEMENT names proteins of enginetest/reference_rg.csv,
// for example
//
//	CGIDP_AGREEMENT=NLS,TRF2_BR,IB5 go test -run Agreement -timeout 0 -v
//
// If CGIDP_TABLE names a file, the table is also written there.
func TestAgreement(t *testing.T) {
	var all []*subject
	for _, name := range agreementProteins(t) {
		c := &subject{name: name, Protein: enginetest.ReferenceProtein(t, name)}
		for seed := 1; seed <= cmp.Or(plannedRuns[name], 3); seed++ {
			c.runs = append(c.runs, &agreementRun{c, seed, math.NaN(), math.NaN()})
		}
		all = append(all, c)
	}
	computeRuns(t, all)
	table := agreementTable(all)
	t.Logf("agreement with published values:\n%s", table)
	if path := os.Getenv("CGIDP_TABLE"); path != "" {
		must.OK(t, os.WriteFile(path, []byte(table), 0o644))
	}
	checkAgreement(t, all)
}

// agreementProteins returns the proteins selected by the environment variables.
func agreementProteins(t *testing.T) []string {
	t.Helper()
	if chosen := os.Getenv("CGIDP_AGREEMENT"); chosen != "" {
		return strings.Split(chosen, ",")
	}
	if !enginetest.Physics() {
		t.Skip("set CGIDP_PHYSICS or CGIDP_AGREEMENT to run")
	}
	return slices.Sorted(maps.Keys(plannedRuns))
}

// subject is a protein with its published Rg and our runs of it, all of the same length.
type subject struct {
	name string
	enginetest.Protein
	runs []*agreementRun
}

// agreementRun is one run with its mean Rg and the error from block averaging, in nm.
type agreementRun struct {
	*subject
	seed   int
	rg, se float64
}

// pooled returns the mean over all runs and its error, or NaN if a run is missing.
func (c *subject) pooled() (rg, se float64) {
	squares := 0.0
	for _, r := range c.runs {
		rg += r.rg / float64(len(c.runs))
		squares += r.se * r.se
	}
	return rg, math.Sqrt(squares) / float64(len(c.runs))
}

func (c *subject) relativeError() float64 {
	rg, se := c.pooled()
	return se / rg
}

func (c *subject) difference() float64 {
	rg, _ := c.pooled()
	return rg/c.Rg - 1
}

// z returns the difference from the published value in combined standard errors.
func (c *subject) z() float64 {
	rg, se := c.pooled()
	return (rg - c.Rg) / math.Hypot(se, c.RgError)
}

// computeRuns computes all runs on all cores, longest first to balance the load. Each run
// goes through Parse and Run, like a user's job.
func computeRuns(t *testing.T, all []*subject) {
	t.Helper()
	var runs []*agreementRun
	for _, c := range all {
		runs = append(runs, c.runs...)
	}
	slices.SortStableFunc(runs, func(a, b *agreementRun) int { return len(b.Sequence) - len(a.Sequence) })
	root := t.TempDir()
	queue := make(chan *agreementRun)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for r := range queue {
				if err := r.compute(t, root); err != nil {
					t.Errorf("%s, seed %d: %v", r.name, r.seed, err)
				}
			}
		})
	}
	for _, r := range runs {
		queue <- r
	}
	close(queue)
	workers.Wait()
}

func (r *agreementRun) compute(t *testing.T, root string) error {
	dir := filepath.Join(root, fmt.Sprintf("%s_%d", r.name, r.seed))
	defer os.RemoveAll(dir)
	settings, faults := Parse(fmt.Appendf(nil, `{"sequences":[%q],"temperature_K":%g,"pH":%g,
		"ionic_strength_M":%g,"steps":%d,"equilibration":%g,"seed":%d}`, r.Sequence, r.Temperature, r.PH,
		r.IonicStrength, runStepsPerResidue*len(r.Sequence), runEquilibration, r.seed), nil)
	if len(faults) > 0 {
		return fmt.Errorf("%v", faults)
	}
	var log strings.Builder
	if err := Run(t.Context(), settings, dir, &log); err != nil {
		return fmt.Errorf("%w; log:\n%s", err, log.String())
	}
	metrics, err := os.ReadFile(filepath.Join(dir, "metrics.json"))
	if err != nil {
		return err
	}
	var found struct {
		Rg float64 `json:"rg_nm"`
		SE float64 `json:"rg_se_nm"`
	}
	err = json.Unmarshal(metrics, &found)
	r.rg, r.se = found.Rg, found.SE
	t.Logf("%s, seed %d: Rg %.3f ± %.3f nm, published %.3f ± %.3f nm", r.name, r.seed, r.rg, r.se, r.Rg, r.RgError)
	return err
}

// agreementTable returns the Markdown table for web/docs/cg-idp.md.
func agreementTable(all []*subject) string {
	var b strings.Builder
	b.WriteString("| protein | residues | steps / million | published Rg / nm | Rg / nm | error / % | difference / % | z |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, c := range all {
		rg, se := c.pooled()
		steps := len(c.runs) * runStepsPerResidue * len(c.Sequence)
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.3f ± %.3f | %.3f ± %.3f | %.2f | %+.1f | %+.1f |\n", c.name, len(c.Sequence),
			float64(steps)/1e6, c.Rg, c.RgError, rg, se, 100*c.relativeError(), 100*c.difference(), c.z())
	}
	s := summarise(all)
	fmt.Fprintf(&b, "\nThe mean difference is %+.1f %%, its mean size %.1f %%; the largest is %.1f standard errors of both, "+
		"the root mean square %.1f.\nRuns of one protein differ from their mean by %.2f of their errors.\n",
		100*s.signed, 100*s.absolute, s.largestZ, s.rmsZ, s.spread)
	return b.String()
}

// agreement summarizes the comparison over all subjects.
type agreement struct {
	signed, absolute float64 // mean relative difference, signed and absolute
	largestZ, rmsZ   float64
	spread           float64 // RMS deviation of runs from their protein's mean, in standard errors
}

func summarise(all []*subject) (s agreement) {
	n, squares, degrees := float64(len(all)), 0.0, 0
	for _, c := range all {
		s.signed += c.difference() / n
		s.absolute += math.Abs(c.difference()) / n
		s.largestZ = max(s.largestZ, math.Abs(c.z()))
		s.rmsZ += c.z() * c.z() / n
		mean, _ := c.pooled()
		for _, r := range c.runs {
			squares += math.Pow((r.rg-mean)/r.se, 2)
		}
		degrees += len(c.runs) - 1
	}
	s.rmsZ, s.spread = math.Sqrt(s.rmsZ), math.Sqrt(squares/float64(degrees))
	return s
}

// checkAgreement checks that sampling errors explain the differences. The overall mean is
// checked only for many proteins. Comparisons are written so that NaN fails.
func checkAgreement(t *testing.T, all []*subject) {
	t.Helper()
	for _, c := range all {
		if c.Rg == 0 {
			t.Errorf("%s: no published value", c.name)
		}
		if !(c.relativeError() <= largestError) {
			t.Errorf("%s: the error is %.2f %%", c.name, 100*c.relativeError())
		}
		if !(math.Abs(c.z()) < 3.5) {
			t.Errorf("%s: off by %.1f standard errors", c.name, c.z())
		}
	}
	if len(all) < 12 {
		return
	}
	s := summarise(all)
	if !(s.absolute < 0.025 && math.Abs(s.signed) < 0.012) {
		t.Errorf("the differences, %.1f %% on average and of %.1f %%, are more than sampling errors",
			100*s.signed, 100*s.absolute)
	}
	// Underestimated errors would make the runs of a protein differ by more than their
	// errors.
	if !(s.spread < 1.5) {
		t.Errorf("runs of one protein differ by %.2f of their errors", s.spread)
	}
}
