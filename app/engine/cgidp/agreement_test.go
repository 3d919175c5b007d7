package cgidp

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"molrun/app/test/enginetest"
)

// The runs for the mean Rg of a protein. Their lengths are fixed beforehand, and
// more runs follow only because of the error, never because of the mean, so that
// stopping favours no result.
const (
	runStepsPerResidue = 50_000 // about 400 independent samples
	runEquilibration   = 0.05   // 2500 steps per residue, 20 to 60 correlation times
	furtherRuns        = 2      // that are added at once
	furtherRounds      = 3      // how often, at most
	wantedError        = 0.008  // of the mean Rg
)

// plannedRuns are chosen to give an error of about 0.7 %: proteins that change their
// shape slowly need more.
var plannedRuns = []struct {
	protein string
	runs    int
}{
	{"FCP1", 2},
	{"NLS", 3},
	{"TRF2_BR", 4},
	{"MenVL", 3},
	{"NWASPV", 4},
	{"IB5", 3},
	{"RpII215_CTD2", 3},
	{"HeV_PNT3_CTD", 4},
	{"Nup153_82", 3},
	{"NUS", 4},
	{"CP12ox", 3},
	{"Sic1", 3},
	{"lambdaN", 4},
}

// TestAgreement compares mean Rg with published CALVADOS 2 values (Tesei et al.,
// Nature 2024, 626, 897). It takes a quarter of an hour on two cores, so it runs
// only with CGIDP_PHYSICS, or if CGIDP_AGREEMENT names proteins of
// enginetest/reference_rg.csv, as in
//
//	CGIDP_AGREEMENT=NLS,TRF2_BR,IB5 go test -run Agreement -timeout 0 -v
//
// The table is also written to the file that CGIDP_TABLE names, if any.
func TestAgreement(t *testing.T) {
	all := subjects(t)
	if len(all) == 0 {
		t.Skip("set CGIDP_PHYSICS or CGIDP_AGREEMENT to run")
	}
	for _, c := range all {
		c.extend(c.planned)
	}
	computeMissing(t, all)
	for round := 0; round < furtherRounds && extendWhereNeeded(t, all) && !t.Failed(); round++ {
		computeMissing(t, all)
	}
	table := agreementTable(all)
	t.Logf("agreement with published values:\n%s", table)
	if path := os.Getenv("CGIDP_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
			t.Error(err)
		}
	}
	checkAgreement(t, all)
}

// subject is a protein with its published size and runs of it, all of one
// length. The seed of a run is its place, from 1.
type subject struct {
	name string
	enginetest.Protein
	planned int
	runs    []runOutcome
}

// runOutcome is the mean Rg of a run and its error by blocking, in nm.
type runOutcome struct{ rg, se float64 }

// subjects are those that the environment variables choose.
func subjects(t *testing.T) []*subject {
	t.Helper()
	var all []*subject
	if chosen := os.Getenv("CGIDP_AGREEMENT"); chosen != "" {
		for name := range strings.SplitSeq(chosen, ",") {
			all = append(all, &subject{name: name, Protein: enginetest.ReferenceProtein(t, name), planned: 3})
		}
	} else if enginetest.Physics() {
		for _, p := range plannedRuns {
			all = append(all, &subject{name: p.protein, Protein: enginetest.ReferenceProtein(t, p.protein), planned: p.runs})
		}
	}
	return all
}

// extend adds runs that are yet to be computed.
func (c *subject) extend(runs int) {
	for range runs {
		c.runs = append(c.runs, runOutcome{math.NaN(), math.NaN()})
	}
}

// extendWhereNeeded reports whether more runs are missing.
func extendWhereNeeded(t *testing.T, all []*subject) bool {
	t.Helper()
	needed := false
	for _, c := range all {
		if !(c.relativeError() <= wantedError) {
			t.Logf("%s: the error is %.2f %%: %d more runs", c.name, 100*c.relativeError(), furtherRuns)
			c.extend(furtherRuns)
			needed = true
		}
	}
	return needed
}

// pooled is the mean over all runs and its error; NaN while one is missing.
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

// z is the difference in standard errors of both.
func (c *subject) z() float64 {
	rg, se := c.pooled()
	return (rg - c.Rg) / math.Hypot(se, c.RgError)
}

// spread is how much runs differ from their mean: the sum of squares in units of
// their errors, and its number of degrees of freedom. If the errors are right, both
// are about equal.
func (c *subject) spread() (squares float64, degrees int) {
	rg, _ := c.pooled()
	for _, r := range c.runs {
		squares += math.Pow((r.rg-rg)/r.se, 2)
	}
	return squares, len(c.runs) - 1
}

// missingRun is a run that has to be computed.
type missingRun struct {
	of   *subject
	seed int
}

// cost is proportional to the time it takes.
func (m missingRun) cost() float64 { return math.Pow(float64(len(m.of.Sequence)), 2.1) }

// computeMissing computes runs on all cores, the longest first, so that the cores
// end at about the same time. Each run goes through Parse and Run, as for users.
func computeMissing(t *testing.T, all []*subject) {
	t.Helper()
	var missing []missingRun
	for _, c := range all {
		for k, r := range c.runs {
			if math.IsNaN(r.rg) {
				missing = append(missing, missingRun{c, k + 1})
			}
		}
	}
	slices.SortStableFunc(missing, func(a, b missingRun) int { return int(b.cost() - a.cost()) })
	root := t.TempDir()
	queue := make(chan missingRun)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for m := range queue {
				m.compute(t, root)
			}
		})
	}
	for _, m := range missing {
		queue <- m
	}
	close(queue)
	workers.Wait()
}

func (m missingRun) compute(t *testing.T, root string) {
	dir := filepath.Join(root, fmt.Sprintf("%s_%d", m.of.name, m.seed))
	defer os.RemoveAll(dir)
	settings, faults := Parse(fmt.Appendf(nil, `{"sequences":[%q],"temperature_K":%g,"pH":%g,
		"ionic_strength_M":%g,"steps":%d,"equilibration":%g,"seed":%d}`, m.of.Sequence, m.of.Temperature, m.of.PH,
		m.of.IonicStrength, runStepsPerResidue*len(m.of.Sequence), runEquilibration, m.seed), nil)
	if len(faults) > 0 {
		t.Errorf("%s: %v", m.of.name, faults)
		return
	}
	var log strings.Builder
	if err := Run(t.Context(), settings, dir, &log); err != nil {
		t.Errorf("%s, seed %d: %v; log:\n%s", m.of.name, m.seed, err, log.String())
		return
	}
	var found struct {
		Rg float64 `json:"rg_nm"`
		SE float64 `json:"rg_se_nm"`
	}
	metrics, err := os.ReadFile(filepath.Join(dir, "metrics.json"))
	if err == nil {
		err = json.Unmarshal(metrics, &found)
	}
	if err != nil {
		t.Errorf("%s, seed %d: %v", m.of.name, m.seed, err)
		return
	}
	m.of.runs[m.seed-1] = runOutcome{found.Rg, found.SE}
	t.Logf("%s, seed %d: Rg %.3f ± %.3f nm, published %.3f ± %.3f nm",
		m.of.name, m.seed, found.Rg, found.SE, m.of.Rg, m.of.RgError)
}

// agreementTable is Markdown, as README.md shows it.
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

// agreement summarises all subjects.
type agreement struct {
	signed, absolute float64 // mean relative difference, with its sign and without
	largestZ, rmsZ   float64
	spread           float64 // root mean square, in errors
	degrees          int     // of freedom in the spread
}

func summarise(all []*subject) agreement {
	var s agreement
	n := float64(len(all))
	for _, c := range all {
		s.signed += c.difference() / n
		s.absolute += math.Abs(c.difference()) / n
		s.largestZ = max(s.largestZ, math.Abs(c.z()))
		s.rmsZ += c.z() * c.z() / n
		squares, degrees := c.spread()
		s.spread += squares
		s.degrees += degrees
	}
	s.rmsZ = math.Sqrt(s.rmsZ)
	s.spread = math.Sqrt(s.spread / float64(s.degrees))
	return s
}

// checkAgreement checks that sampling explains the differences. The mean over all is
// only checked for many proteins. Comparisons are written so that NaN fails.
func checkAgreement(t *testing.T, all []*subject) {
	t.Helper()
	for _, c := range all {
		if c.Rg == 0 {
			t.Errorf("%s: no published value", c.name)
		}
		if !(c.relativeError() <= wantedError) {
			t.Errorf("%s: the error is %.2f %% after %d runs", c.name, 100*c.relativeError(), len(c.runs))
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
	// Errors that are too small would show as runs that differ by more.
	if !(s.spread < 1.5) {
		t.Errorf("runs of one protein differ by %.2f of their errors", s.spread)
	}
}
