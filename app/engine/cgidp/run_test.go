package cgidp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/engine/md"
	"molrun/app/engine/run"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

func settingsOf(t testing.TB, text string) *Settings {
	t.Helper()
	s, faults := Parse([]byte(text), nil)
	if faults != nil {
		t.Fatal(faults)
	}
	return s
}

// The published Rg is 1.671 ± 0.008 nm.
func TestRunFCP1(t *testing.T) {
	t.Parallel()
	p := enginetest.ReferenceProtein(t, "FCP1")
	steps, tolerance := 1_000_000, 0.06
	if enginetest.RaceDetector {
		steps, tolerance = 50_000, 0.5
	}
	dir, log := engine.Simulate(t, fmt.Sprintf(
		`{"sequences":[%q],"names":["FCP1"],"temperature_K":%g,"pH":%g,"ionic_strength_M":%g,"steps":%d,"seed":2}`,
		p.Sequence, p.Temperature, p.PH, p.IonicStrength, steps))

	m := enginetest.ReadJSON[map[string]any](t, dir, "metrics.json")
	enginetest.Near(t, "Rg", m["rg_nm"].(float64), p.Rg, tolerance)
	for _, key := range []string{"rg_nm", "rg_se_nm", "ree_nm", "ree_se_nm", "nu", "nu_se", "converged", "steps_per_second"} {
		if m[key] == nil {
			t.Errorf("metrics.json is missing %s: %v", key, m)
		}
	}
	if !enginetest.RaceDetector {
		enginetest.Near(t, "nu", m["nu"].(float64), 0.62, 0.04)
		if m["converged"] != true {
			t.Errorf("not converged: %v", m)
		}
	}

	d := enginetest.ReadDCD(t, filepath.Join(dir, "FCP1", "traj.dcd"))
	if len(d.Frames) != steps/1000 || d.Beads != 32 {
		t.Errorf("%d frames of %d beads", len(d.Frames), d.Beads)
	}
	if rows := enginetest.ReadCSV(t, dir, "FCP1", "timeseries.csv"); len(rows) != 1+steps/200 {
		t.Errorf("%d rows in timeseries.csv, want %d", len(rows), 1+steps/200)
	}
	models := bytes.Count(enginetest.Read(t, dir, "FCP1", "ensemble.pdb"), []byte("\nENDMDL"))
	must.Equal(t, "models in ensemble.pdb", models, min(100, steps/1000*9/10))
	if last := "molrun:progress 1 done"; !strings.Contains(log, last) {
		t.Errorf("log is missing %q:\n%s", last, log)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	dir, _ := engine.Simulate(t, `{"sequences":["`+hst5+`"],"names":["Hst5"],"temperature_K":293,"pH":7.5,"steps":10000}`)
	got := enginetest.ReadJSON[map[string]any](t, dir, "Hst5", "summary.json")
	delete(got, "results")
	delete(got, "performance")
	if digest := fmt.Sprint(got["input_sha256"]); len(digest) != 64 {
		t.Errorf("digest of the input %q", digest)
	}
	delete(got, "input_sha256")
	want := map[string]any{
		"engine": "cg-idp", "engine_version": "1", "molrun_version": "unknown", "model": "CALVADOS 2", "name": "Hst5", "sequence": hst5,
		"n_residues": 24.0, "complete": true,
		"settings": map[string]any{
			"temperature_K": 293.0, "pH": 7.5, "ionic_strength_M": 0.15, "steps": 10000.0, "equilibration": 0.1,
			"replicas": 1.0, "seed": 1.0, "frame_every": 1000.0, "sample_every": 200.0, "friction_per_ps": 0.01,
			"charged_termini": true,
		},
		"derived":  map[string]any{"net_charge": 5.2146, "mass_Da": 3036.3, "dielectric": 80.3088, "debye_length_nm": 0.7876, "time_step_ps": 0.01},
		"warnings": got["warnings"],
		"cite":     []any{"10.12688/openreseurope.14967.2"},
	}
	must.Equal(t, "summary", got, want)
	must.Contain(t, "warnings", fmt.Sprint(got["warnings"]), "the run is short")
}

// If every sample has a row, the means of the rows equal those of the summary.
func TestResultsMatchTimeseries(t *testing.T) {
	t.Parallel()
	dir, _ := engine.Simulate(t, `{"sequences":["`+hst5+`"],"steps":15000,"replicas":2,"equilibration":0.3,"frame_every":700}`)
	var rg, ree, temperature md.Series
	for _, row := range enginetest.ReadCSV(t, dir, "seq1", "timeseries.csv")[1:] {
		if enginetest.Parse(t, row[0]) <= 4500 {
			continue
		}
		enginetest.Near(t, "time", enginetest.Parse(t, row[1]), enginetest.Parse(t, row[0])/100, 1e-9)
		rg.Add(enginetest.Parse(t, row[3]))
		ree.Add(enginetest.Parse(t, row[4]))
		temperature.Add(enginetest.Parse(t, row[6]))
	}
	s := enginetest.ReadJSON[struct{ Results map[string]any }](t, dir, "seq1", "summary.json")
	mean := func(key string) float64 { return s.Results[key].(map[string]any)["mean"].(float64) }
	enginetest.Near(t, "Rg", mean("rg_nm"), rg.Mean(), 1e-4)
	enginetest.Near(t, "end to end", mean("ree_nm"), ree.Mean(), 1e-4)
	enginetest.Near(t, "temperature", mean("temperature_K"), temperature.Mean(), 1e-2)
	must.Equal(t, "samples after equilibration", rg.Count(), 2*53)
	distance := enginetest.ReadCSV(t, dir, "seq1", "distance_map.csv")
	enginetest.Near(t, "distance of the ends", enginetest.Parse(t, distance[0][23]), ree.Mean(), 0.3)
	if distance[0][23] != distance[23][0] || distance[5][5] != "0.0000" {
		t.Errorf("the distance map is not symmetric: %s and %s", distance[0][23], distance[23][0])
	}
	for replica := 1; replica <= 2; replica++ {
		d := enginetest.ReadDCD(t, filepath.Join(dir, "seq1", run.TrajectoryName(replica)))
		if len(d.Frames) != 15000/700 || d.Words[3] != 15000/700*700 {
			t.Errorf("replica %d: %d frames, the last of step %d", replica, len(d.Frames), d.Words[3])
		}
	}
}

const several = `{"sequences":["` + hst5 + `","GSGSGSGSGS","ACDEFGHIKLMNPQRSTVWY"],"names":["Hst5","short","all"],
	"steps":3000,"replicas":3,"seed":5,"cores":%d}`

func TestCoresMakeNoDifference(t *testing.T) {
	t.Parallel()
	one, _ := engine.Simulate(t, fmt.Sprintf(several, 1))
	want := enginetest.Files(t, one)
	others := []int{2, 64}
	if enginetest.RaceDetector {
		others = others[:1]
	}
	for _, cores := range others {
		dir, _ := engine.Simulate(t, fmt.Sprintf(several, cores))
		must.Equal(t, fmt.Sprintf("files with %d cores", cores), enginetest.Files(t, dir), want)
	}
	checkTables(t, one)
	wantNames := []string{"metrics.json", "results.csv"}
	for _, name := range []string{"Hst5", "all", "short"} {
		for _, file := range []string{
			"contact_map.csv", "distance_map.csv", "distance_map.png", "ensemble.pdb", "rg.svg", "scaling.csv", "summary.json",
			"timeseries.csv", "top.pdb", "traj.dcd", "traj_r2.dcd", "traj_r3.dcd",
		} {
			wantNames = append(wantNames, name+"/"+file)
		}
	}
	slices.Sort(wantNames)
	must.Equal(t, "files", slices.Sorted(maps.Keys(want)), wantNames)
}

// checkTables checks that the tables contain all sequences.
func checkTables(t *testing.T, dir string) {
	t.Helper()
	rows := enginetest.ReadCSV(t, dir, "results.csv")
	m := enginetest.ReadJSON[struct {
		Sequences map[string]map[string]any
	}](t, dir, "metrics.json")
	for k, name := range []string{"Hst5", "short", "all"} {
		row := rows[k+1]
		if row[0] != name || row[5] != "3000" || row[6] != "3" {
			t.Errorf("row %d is %v", k+1, row)
		}
		enginetest.Near(t, "Rg", m.Sequences[name]["rg_nm"].(float64), enginetest.Parse(t, row[7]), 1e-9)
	}
	for _, name := range []string{"nu", "nu_se"} {
		if nu, has := m.Sequences["short"][name]; nu != nil || !has {
			t.Errorf("%s of ten residues is %v, want null", name, nu)
		}
	}
	if rows[2][11] != "" || rows[2][12] != "" {
		t.Errorf("nu of ten residues is %q in the table", rows[2][11:13])
	}
}

// Replicas that still depend on their initial conformations differ by more than block
// averaging within each replica can detect.
func TestErrorsKnowThatReplicasDiffer(t *testing.T) {
	t.Parallel()
	c := newChain(settingsOf(t, `{"sequences":["`+hst5+`"],"steps":100000,"replicas":4}`), 0, t.TempDir())
	rng := rand.New(rand.NewPCG(2, 1))
	var replicas []*replica
	for k := range 4 {
		r := newReplica(c.system, k+1, c.Folder)
		shift := 0.1 * float64(k)
		for range c.system.plan.samples() {
			v := 1.3 + shift + 0.05*rng.NormFloat64()
			r.rg.Add(v)
			r.ree.Add(2 * v)
			r.kinetic.Add(293)
		}
		replicas = append(replicas, r)
	}
	c.total = md.NewPairSums(c.system.model.Size())
	res := c.results(replicas, false)
	want := 0.1 * math.Sqrt(5./3) / 2 // standard error of the mean of 0, 0.1, 0.2, 0.3
	enginetest.Near(t, "error of Rg", res.rg.SE, want, 0.1*want)
	enginetest.Near(t, "error of the end-to-end distance", res.ree.SE, 2*want, 0.2*want)
}

// A run is not converged, whatever its own statistics, if it has fewer than 50
// independent samples for a typical chain of its length, or fewer than 20 per replica, or
// if it still depends on its initial conformation.
func TestShortRunsAreNotConverged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		steps, replicas int
		time            float64 // autocorrelation time, in samples
		want            bool
	}{
		{150_000, 1, 7, false},
		{170_000, 1, 7, true},
		{62_000, 8, 7, false},
		{65_000, 8, 7, true},
		{170_000, 1, 28, true},
		{170_000, 1, 29, false},
	} {
		y := newSystem(settingsOf(t, fmt.Sprintf(`{"sequences":[%q],"steps":%d,"replicas":%d}`, hst5, tt.steps, tt.replicas)), 0)
		e := md.Estimate{SE: 0.01, SD: 0.2, Independent: 400, Time: tt.time, Shortest: 1000}
		must.Equal(t, fmt.Sprintf("%+v: converged", tt), y.isConverged(e, e), tt.want)
		e.Independent = 40
		must.Equal(t, fmt.Sprintf("%+v: converged with 40 samples", tt), y.isConverged(e, e), false)
	}
}

// The errors of a run that still drifts are at least half the drift, and all files give
// the same errors.
func TestErrorsOfDriftingRunsAreWidened(t *testing.T) {
	t.Parallel()
	c := newChain(settingsOf(t, `{"sequences":["`+hst5+`"],"steps":300000}`), 0, t.TempDir())
	r := newReplica(c.system, 1, c.Folder)
	rng := rand.New(rand.NewPCG(2, 1))
	for k := range c.system.plan.samples() {
		v := 1.3 + 0.05*rng.NormFloat64()
		if k >= c.system.plan.samples()/2 {
			v += 0.06
		}
		r.rg.Add(v)
		r.ree.Add(2 * v)
		r.kinetic.Add(293 + rng.NormFloat64())
	}
	c.total = md.NewPairSums(c.system.model.Size())
	res := c.results([]*replica{r}, true)
	s := c.system.summary(res)
	if se := float64(s.Results.Rg.SE); se < 0.03 || s.Results.Converged || s.metrics().RgSE != s.Results.Rg.SE {
		t.Errorf("error of Rg %g, converged %v", se, s.Results.Converged)
	}
	if se := float64(s.Results.Temperature.SE); se > 0.1 {
		t.Errorf("error of the temperature %g", se)
	}
	must.Contain(t, "warnings", fmt.Sprint(s.Warnings), "errors include half the difference")
}

func TestReplicasAndSeedsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, seed := range []int{1, 2} {
		dir, _ := engine.Simulate(t, fmt.Sprintf(`{"sequences":["%s","%s"],"steps":2000,"replicas":2,"seed":%d}`, hst5, hst5, seed))
		for name, content := range enginetest.Files(t, dir) {
			if !strings.HasSuffix(name, ".dcd") {
				continue
			}
			coordinates := content[trajectory.HeaderSize:]
			if other, ok := seen[coordinates]; ok {
				t.Errorf("%s of seed %d and %s are the same", name, seed, other)
			}
			seen[coordinates] = fmt.Sprintf("%s of seed %d", name, seed)
		}
	}
}

func TestTimeseriesIsThinned(t *testing.T) {
	s := settingsOf(t, `{"sequences":["`+hst5+`"],"steps":2e6,"replicas":5,"sample_every":10}`)
	p := newPlan(s, &s.Sequences[0])
	must.Equal(t, "a row every", p.rowEvery, 50)
}

// cancelOn is a log that cancels a run when a line contains text.
type cancelOn struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelOn) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(c.text)) {
		c.cancel()
	}
	return len(line), nil
}

func TestCancelledRunCanResume(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"cg-idp 1", "molrun:progress"} {
		ctx, cancel := context.WithCancel(t.Context())
		dir := t.TempDir()
		s := settingsOf(t, `{"sequences":["`+hst5+`"],"steps":2e9,"frame_every":1e5,"replicas":2,"cores":2}`)
		if err := Run(ctx, s, dir, cancelOn{text, cancel}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %q: error %v", text, err)
		}
		if text == "molrun:progress" {
			if sum := enginetest.ReadJSON[map[string]any](t, dir, "seq1", "summary.json"); sum["complete"] != false {
				t.Errorf("a cancelled run counts as complete: %v", sum["complete"])
			}
			var log bytes.Buffer
			err := Run(ctx, s, dir, &log)
			if !errors.Is(err, context.Canceled) || !strings.Contains(log.String(), "seq1 resumes from checkpoint.bin, with 0 of 2 replicas finished") {
				t.Errorf("there is nothing to resume: %v; log:\n%s", err, log.String())
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "metrics.json")); err == nil {
			t.Error("a cancelled run has metrics")
		}
	}
}

func TestRunNeedsFASTA(t *testing.T) {
	err := Run(t.Context(), settingsOf(t, `{"fasta":"upload:abc"}`), t.TempDir(), io.Discard)
	must.Fail(t, "the error", err, `"upload:abc"`)
}

// A run fails if a file cannot be written, because the output would be incomplete.
func TestRunEndsWithTheFirstErrorOfAReplica(t *testing.T) {
	for _, inTheWay := range []string{"seq1", filepath.Join("seq1", run.TopologyFile)} {
		dir := t.TempDir()
		path := filepath.Join(dir, inTheWay)
		if inTheWay != "seq1" {
			path = filepath.Join(path, "file") // a directory cannot be replaced by a file
		}
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.OK(t, os.WriteFile(path, nil, 0o600))
		err := Run(t.Context(), settingsOf(t, `{"sequences":["`+hst5+`"],"steps":1000,"frame_every":100}`), dir, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "sequence seq1, replica 1: ") || !strings.Contains(err.Error(), inTheWay) {
			t.Errorf("error %v, want one about %s", err, inTheWay)
		}
	}
}

func TestStatus(t *testing.T) {
	y := newSystem(settingsOf(t, `{"sequences":["`+hst5+`"],"steps":10000}`), 0)
	r := newReplica(y, 1, t.TempDir())
	must.OK(t, r.Start())
	defer r.Trajectory.Close()
	check := func(want string) {
		t.Helper()
		if got := r.Status(); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("after %d steps %q, want %s", r.Step(), got, want)
		}
	}
	check(`^equilibrating Rg \d\.\d\d nm T \d+\.\d K$`)
	for range 10 {
		must.OK(t, r.Burst())
	}
	r.Busy = time.Second
	check(`^Rg \d\.\d\d nm <Rg> \d\.\d{3}±\d\.\d{3} nm T \d+\.\d K 5 ksteps/s$`)
}

func TestShortDuration(t *testing.T) {
	for seconds, want := range map[float64]string{
		2.24: "2.2 s", 119: "119.0 s", 600: "10m", 3720: "1h2m", 86400: "24h0m", 259200: "3.0 days",
	} {
		must.Equal(t, fmt.Sprintf("%g s", seconds), store.ShortDuration(seconds), want)
	}
}
