package binodal

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// tree is a JSON object that a test can modify before the engine reads it.
type tree = map[string]any

// phasesOf returns the phase metrics of a slab in the format of cg-condensate.
func phasesOf(dense, denseSE, dilute, diluteSE float64) tree {
	return tree{
		"cden_mM": tree{"mean": dense / 2.6, "se": denseSE / 2.6}, "cdil_mM": tree{"mean": dilute / 2.6, "se": diluteSE / 2.6},
		"cdil_below_mM": nil, "cdil_below_mg_mL": nil,
		"cden_mg_mL": dense, "cden_se_mg_mL": denseSE, "cdil_mg_mL": dilute, "cdil_se_mg_mL": diluteSE,
		"dG_transfer": tree{"kT": math.Log(dilute / dense), "kT_se": 0.1}, "dG_transfer_below": tree{"kT": nil, "kT_se": nil},
	}
}

// slab returns the summary of a slab with two phases at the concentrations of truth.
func slab(temperature float64) tree {
	dense, dilute := truth().Phases(temperature)
	return tree{
		"engine": "cg-condensate", "engine_version": "1", "model": "CALVADOS 2", "complete": true,
		"settings": tree{
			"components": []any{tree{"name": "lc", "sequence": "GFYRGSYDGFYRGSYD", "copies": 100}},
			"protocol":   "slab", "box_nm": []any{9, 9, 50}, "temperature_K": temperature, "pH": 7, "ionic_strength_M": 0.15,
			"steps": 1000000, "equilibration": 0.25, "replicas": 1, "seed": 1, "sample_every": 500, "friction_per_ps": 0.01, "charged_termini": true,
		},
		"derived": tree{"mean_concentration_mg_mL": 106.6},
		"results": tree{"condensed": true, "converged": true, "components": []any{tree{"name": "lc", "phases": phasesOf(dense, 4, dilute, 1)}}},
	}
}

func settingsOf(s tree) tree { return s["settings"].(tree) }
func resultsOf(s tree) tree  { return s["results"].(tree) }

// phasesIn returns the phases of the first component, for a test to modify.
func phasesIn(s tree) tree {
	return resultsOf(s)["components"].([]any)[0].(tree)["phases"].(tree)
}

// single turns s into the summary of a slab that did not condense.
func single(s tree) tree {
	resultsOf(s)["condensed"], resultsOf(s)["reason"] = false, "The chains do not condense."
	delete(resultsOf(s)["components"].([]any)[0].(tree), "phases")
	return s
}

// undecided turns s into the summary of a slab for which condensation is undecided.
func undecided(s tree) tree {
	single(s)
	resultsOf(s)["condensed"], resultsOf(s)["converged"] = nil, false
	resultsOf(s)["reason"] = "slab thinner than its interfaces: 4.2 nm thick"
	return s
}

// bounded replaces the dilute concentration of s with an upper bound, in mg/mL.
func bounded(s tree, below float64) tree {
	f := phasesIn(s)
	f["cdil_mg_mL"], f["cdil_se_mg_mL"], f["cdil_mM"] = nil, nil, tree{"mean": nil, "se": nil}
	f["cdil_below_mg_mL"], f["cdil_below_mM"] = below, below/2.6
	f["dG_transfer"], f["dG_transfer_below"] = tree{"kT": nil, "kT_se": nil}, tree{"kT": -3.5}
	return s
}

func doubtful(s tree) tree {
	resultsOf(s)["converged"] = false
	return s
}

// slabs returns one summary per temperature.
func slabs(at ...float64) (all []tree) {
	for _, temperature := range at {
		all = append(all, slab(temperature))
	}
	return all
}

// evaluated runs the engine on the summaries of jobs s1, s2 and so on, and returns its
// output files and log.
func evaluated(t *testing.T, unconverged bool, summaries ...tree) (files map[string]string, log string, err error) {
	t.Helper()
	order := make([]int, len(summaries))
	for i := range order {
		order[i] = i
	}
	return evaluatedIn(t, order, unconverged, summaries...)
}

func evaluatedIn(t *testing.T, order []int, unconverged bool, summaries ...tree) (files map[string]string, log string, err error) {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	s := &Settings{Unconverged: unconverged}
	var paths []string
	for _, i := range order {
		text, err := json.Marshal(summaries[i])
		must.OK(t, err)
		path := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		must.OK(t, os.WriteFile(path, text, 0o600))
		paths, s.Points = append(paths, path), append(s.Points, fmt.Sprintf("job:s%d/@summary", i+1))
	}
	var printed bytes.Buffer
	err = Run(t.Context(), s, paths, out, &printed)
	files = map[string]string{}
	entries, _ := os.ReadDir(out)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(out, e.Name()))
		must.OK(t, err)
		files[e.Name()] = string(text)
	}
	for name, text := range files {
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s has numbers that are none:\n%s", name, text)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON:\n%s", name, text)
		}
	}
	return files, printed.String(), err
}

// figuresOf reads metrics.json.
func figuresOf(t *testing.T, files map[string]string) tree {
	t.Helper()
	var m tree
	must.OK(t, json.Unmarshal([]byte(files[metricsFile]), &m))
	return m
}

func near(t *testing.T, m tree, name string, want float64) {
	t.Helper()
	if got, ok := m[name].(float64); !ok || math.Abs(got-want) > 1e-4*math.Abs(want) {
		t.Errorf("%s is %v, want %g", name, m[name], want)
	}
}

func TestCriticalPointOfSummaries(t *testing.T) {
	files, log, err := evaluated(t, false, append(slabs(283, 293, 303, 313, 323, 331), single(slab(353)))...)
	must.OK(t, err)
	m, want := figuresOf(t, files), truth()
	near(t, m, "Tc_K", want.Tc.Mean)
	near(t, m, "rhoc_mg_mL", want.Rhoc.Mean)
	near(t, m, "width_mg_mL", want.Width.Mean)
	near(t, m, "diameter_slope_mg_mL_K", want.Slope.Mean)
	near(t, m, "Tc_above_K", 331)
	near(t, m, "Tc_below_K", 353)
	near(t, m, "extrapolated_K", want.Tc.Mean-331)
	if m["points"] != 7.0 || m["points_used"] != 6.0 || m["far_extrapolation"] != false || m["over"] != "temperature" {
		t.Errorf("%v", m)
	}
	for _, name := range []string{"Tc_se_K", "rhoc_se_mg_mL", "width_se_mg_mL", "diameter_slope_se_mg_mL_K"} {
		if se, ok := m[name].(float64); !ok || se <= 0 {
			t.Errorf("%s is %v", name, m[name])
		}
	}
	for _, name := range []string{plotFile, summaryFile} {
		must.Contain(t, name+" says what made it", files[name], "unknown")
	}
	for _, name := range []string{plotFile, tableFile, curveFile, summaryFile} {
		if files[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	if !strings.Contains(log, "critical temperature 341.7±") || !strings.Contains(log, "s7: did not condense") {
		t.Errorf("printed:\n%s", log)
	}
}

// A series that does not determine a critical temperature completes with a reason.
func TestSeriesWithoutCriticalPoint(t *testing.T) {
	alone := func(s tree, key string, value any) tree {
		phasesIn(s)[key] = value
		return s
	}
	rising := slabs(283, 293, 303, 313)
	for i, s := range rising {
		phasesIn(s)["cden_mg_mL"] = 400 + 20*float64(i)
	}
	loose := slabs(283, 284, 285)
	for _, s := range loose {
		phasesIn(s)["cden_se_mg_mL"] = 80
	}
	for name, tt := range map[string]struct {
		summaries []tree
		reason    string
		notes     []string
	}{
		"one":              {slabs(293), "there are 1.", nil},
		"two":              {slabs(283, 293), "there are 2.", nil},
		"equal":            {[]tree{slab(293), seeded(slab(293), 2), seeded(slab(293), 3)}, "there are 1.", nil},
		"the same run":     {slabs(283, 293, 293), "there are 2.", []string{"s3: same run as s2"}},
		"none condensed":   {[]tree{single(slab(333)), single(slab(343)), single(slab(353))}, "there are 0.", []string{"s1: did not condense", "s3: did not condense"}},
		"not converged":    {[]tree{slab(283), slab(293), doubtful(slab(303))}, "there are 2.", []string{"s3: not converged: run more steps"}},
		"no error":         {[]tree{slab(283), slab(293), alone(slab(303), "cden_se_mg_mL", nil)}, "there are 2.", []string{"s3: the error of its dense phase is unknown"}},
		"zero error":       {[]tree{slab(283), slab(293), alone(slab(303), "cdil_se_mg_mL", 0)}, "there are 2.", []string{"s3: the error of its dilute phase is unknown"}},
		"negative error":   {[]tree{slab(283), slab(293), alone(slab(303), "cden_se_mg_mL", -1)}, "there are 2.", []string{"s3: the error of its dense phase is unknown"}},
		"no dense phase":   {[]tree{slab(283), slab(293), alone(slab(303), "cden_mg_mL", nil)}, "there are 2.", []string{"s3: the concentration of its dense phase is unknown"}},
		"negative dilute":  {[]tree{slab(283), slab(293), alone(slab(303), "cdil_mg_mL", -3)}, "there are 2.", []string{"s3: the concentration of its dilute phase is unknown"}},
		"inverted":         {[]tree{slab(283), slab(293), alone(slab(303), "cdil_mg_mL", 900)}, "there are 2.", []string{"s3: its dilute phase is not less concentrated"}},
		"bound of nothing": {[]tree{slab(283), slab(293), bounded(slab(303), 0)}, "there are 2.", []string{"s3: the concentration of its dilute phase is unknown"}},
		"rising":           {rising, "do not become more alike", nil},
		"absurd":           {[]tree{slab(283), slab(293), slab(303), alone(alone(slab(313), "cden_mg_mL", 1e9), "cden_se_mg_mL", 1e-3)}, "do not become more alike", nil},
		"loose":            {loose, "The error of the critical temperature exceeds the 2 K", nil},
	} {
		files, log, err := evaluated(t, false, tt.summaries...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m := figuresOf(t, files)
		if m["Tc_K"] != nil || m["rhoc_mg_mL"] != nil || m["far_extrapolation"] != nil || !strings.Contains(log, tt.reason) {
			t.Errorf("%s: Tc %v, printed\n%s\nwant %q", name, m["Tc_K"], log, tt.reason)
		}
		for _, note := range tt.notes {
			must.Contain(t, name, log, note)
		}
		if files[plotFile] == "" || files[tableFile] == "" || files[curveFile] != "" {
			t.Errorf("%s: files %v", name, len(files))
		}
	}
}

func seeded(s tree, seed int) tree {
	settingsOf(s)["seed"] = seed
	return s
}

// An upper bound counts as a uniform distribution from 0 to the bound, whose mean is half
// the bound.
func TestBoundsCountWithTheirWidth(t *testing.T) {
	all := slabs(283, 293, 303, 313, 323, 331)
	_, dilute := truth().Phases(283)
	bounded(all[0], 2*dilute)
	files, log, err := evaluated(t, false, all...)
	must.OK(t, err)
	m := figuresOf(t, files)
	near(t, m, "Tc_K", truth().Tc.Mean) // half the bound is the true concentration
	if !strings.Contains(log, fmt.Sprintf("treated as uniform from 0 to %.3g mg/mL", 2*dilute)) || m["points_used"] != 6.0 {
		t.Errorf("%v, printed\n%s", m, log)
	}
	p := Point{Dense: Concentration{500, 3}, Dilute: Concentration{math.NaN(), math.NaN()}, Below: 6}
	if _, got := p.concentrations(); got.Mean != 3 || math.Abs(got.SE-math.Sqrt(3)) > 1e-12 {
		t.Errorf("a bound of 6 is taken as %+v", got)
	}
	wide := bounded(slab(283), 100*dilute)
	loose, _, err := evaluated(t, false, append([]tree{wide}, all[1:]...)...)
	must.OK(t, err)
	if a, b := m["width_se_mg_mL"].(float64), figuresOf(t, loose)["width_se_mg_mL"].(float64); a >= b {
		t.Errorf("errors of the width: %g with a bound close by, %g with one far away", a, b)
	}
}

func TestPointsThatAreNotConverged(t *testing.T) {
	all := append(slabs(283, 293, 303), doubtful(slab(313)), doubtful(single(slab(353))))
	without, _, err := evaluated(t, false, all...)
	must.OK(t, err)
	with, log, err := evaluated(t, true, all...)
	must.OK(t, err)
	a, b := figuresOf(t, without), figuresOf(t, with)
	if a["points_used"] != 3.0 || a["Tc_above_K"] != 303.0 || a["Tc_below_K"] != nil || a["points_used_unconverged"] != 0.0 {
		t.Errorf("without: %v", a)
	}
	if b["points_used"] != 4.0 || b["Tc_above_K"] != 313.0 || b["Tc_below_K"] != nil || b["points_used_unconverged"] != 1.0 {
		t.Errorf("with: %v", b)
	}
	if !strings.Contains(log, "s5: not converged: run more steps") || !strings.Contains(log, "s4: used though not converged") || !strings.Contains(log, "1 of the 4 points used are not converged") {
		t.Errorf("printed\n%s", log)
	}
}

// Undecided slabs do not bound the critical temperature; slabs with a single phase do.
func TestSlabsThatDoNotTellBoundNothing(t *testing.T) {
	good := slabs(283, 293, 303, 313, 323, 331)
	for _, unconverged := range []bool{false, true} {
		files, log, err := evaluated(t, unconverged, append(slices.Clone(good), undecided(slab(335)))...)
		must.OK(t, err)
		if m := figuresOf(t, files); m["Tc_below_K"] != nil || m["points_used"] != 6.0 || m["Tc_K"] == nil {
			t.Error(m)
		}
		if !strings.Contains(log, "s7: condensation undecided: slab thinner") || strings.Contains(log, "do not condense") || strings.Contains(log, "molrun:warning") {
			t.Errorf("printed\n%s", log)
		}
		must.Equal(t, "condensed", cells(t, files[tableFile])["condensed"], []string{"true", "true", "true", "true", "true", "true", ""})
		var sum struct{ Points []tree }
		must.OK(t, json.Unmarshal([]byte(files[summaryFile]), &sum))
		if last := sum.Points[6]; last["condensed"] != nil || last["reason"] == nil || sum.Points[0]["condensed"] != true {
			t.Error(last)
		}
		if !strings.Contains(files[plotFile], "phases unknown") || strings.Contains(files[plotFile], "one phase") {
			t.Error("the picture shows one phase")
		}
	}
	files, _, err := evaluated(t, false, append(good, single(slab(345)))...)
	if err != nil || figuresOf(t, files)["Tc_below_K"] != 345.0 {
		t.Errorf("%v, %v", err, figuresOf(t, files))
	}
}

func TestWarnings(t *testing.T) {
	off := slabs(283, 293, 303, 313, 323, 331)
	phasesIn(off[2])["cden_mg_mL"] = phasesIn(off[2])["cden_mg_mL"].(float64) + 60
	larger := slabs(283, 293, 303, 331)
	settingsOf(larger[1])["box_nm"] = []any{12, 12, 80}
	steep := slabs(283, 293, 303)
	for _, s := range steep {
		more := 8*(truth().Tc.Mean-settingsOf(s)["temperature_K"].(float64)) - 250
		f := phasesIn(s)
		f["cden_mg_mL"], f["cdil_mg_mL"] = f["cden_mg_mL"].(float64)+more, f["cdil_mg_mL"].(float64)+more
	}
	for want, summaries := range map[string][]tree{
		"extrapolate to a negative critical concentration":                                                         steep,
		"is 38.7 K above the highest temperature with a condensate, a long extrapolation for points spanning 20 K": slabs(283, 293, 303),
		"deviate from the law by more than their errors":                                                           off,
		"largest deviation: s3, ":                                                                                  off,
		"diameters do not lie on a line":                                                                           off,
		"no condensate at 335 K, below the critical temperature":                                                   append(slabs(283, 303, 331), single(slab(335))),
		"no condensate at 293 K but one at 331 K":                                                                  append(slabs(283, 303, 331), single(slab(293))),
		"have different boxes":                                                                                     larger,
	} {
		_, log, err := evaluated(t, false, summaries...)
		if err != nil || !strings.Contains(log, "molrun:warning ") || !strings.Contains(log, want) {
			t.Errorf("%v; no %q in\n%s", err, want, log)
		}
	}
	if _, log, _ := evaluated(t, false, steep...); strings.Contains(log, "NaN") || !strings.Contains(log, "critical concentration unknown") {
		t.Errorf("a negative critical concentration is printed as\n%s", log)
	}
	_, log, err := evaluated(t, false, slabs(283, 293, 303, 313, 323, 331)...)
	if err != nil || strings.Contains(log, "Warning") {
		t.Errorf("%v; warnings about good points:\n%s", err, log)
	}
}

func TestPointsThatDoNotGoTogether(t *testing.T) {
	with := func(s tree, key string, value any) tree {
		settingsOf(s)[key] = value
		return s
	}
	mixed := with(slab(303), "components", []any{tree{"sequence": "GSGS", "copies": 5}, tree{"sequence": "RRRR", "copies": 5}})
	running := slab(313)
	running["complete"] = false
	for name, tt := range map[string]struct {
		summaries []tree
		want      []string
	}{
		"pH":       {[]tree{slab(283), with(slab(293), "pH", 6.5), slab(303)}, []string{"differ in pH: 6.5 (s2); 7 (s1, s3)"}},
		"sequence": {[]tree{slab(283), with(slab(293), "components", []any{tree{"sequence": "GFYRGSYDGFYRGSYE", "copies": 100}})}, []string{"differ in sequence: GFYRGSYDGFYRGSYD (s1); GFYRGSYDGFYRGSYE (s2)"}},
		"ends":     {[]tree{slab(283), with(slab(293), "charged_termini", false)}, []string{"differ in charged_termini: false (s2); true (s1)"}},
		"two":      {[]tree{slab(283), with(slab(293), "ionic_strength_M", 0.3)}, []string{"in temperature and in ionic strength: 283 K and 0.15 mol/L (s1); 293 K and 0.3 mol/L (s2)"}},
		"many": {[]tree{slab(283), with(slab(293), "protocol", "bulk"), mixed, running, {"engine": "cg-idp"}}, []string{
			`s2 has the protocol "bulk"`, "s3 has 2 components", "s4 has not finished", "s5 is not a summary.json of a cg-condensate job",
		}},
		"cold": {[]tree{with(slab(283), "temperature_K", -5)}, []string{"s1 is at -5 K"}},
	} {
		files, _, err := evaluated(t, true, tt.summaries...)
		if err == nil || len(files) > 0 {
			t.Errorf("%s: %v, %d files", name, err, len(files))
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; no %q", name, err, want)
			}
		}
	}
}

func TestBinodalOverIonicStrength(t *testing.T) {
	var all []tree
	for _, salt := range []float64{0.5, 0.05, 0.15} {
		s := slab(293)
		settingsOf(s)["ionic_strength_M"] = salt
		all = append(all, s)
	}
	files, log, err := evaluated(t, false, all...)
	must.OK(t, err)
	m := figuresOf(t, files)
	if m["over"] != "ionic_strength" || m["Tc_K"] != nil || m["Tc_above_K"] != nil || !strings.Contains(log, "No law predicts a critical ionic strength") {
		t.Errorf("%v\n%s", m, log)
	}
	rows := strings.Split(strings.TrimSpace(files[tableFile]), "\n")
	var order []string
	for _, row := range rows[1:] {
		order = append(order, strings.Split(row, ",")[2])
	}
	must.Equal(t, "ionic strengths", []string{"0.05", "0.15", "0.5"}, order)
	if !strings.Contains(files[plotFile], "ionic strength / mol/L") {
		t.Error("the picture has another axis")
	}
}

func TestOrderOfPointsMakesNoDifference(t *testing.T) {
	all := append(slabs(283, 293, 303, 313, 323), single(slab(353)), seeded(slab(303), 2), slab(293))
	bounded(all[0], 4)
	want, _, err := evaluated(t, false, all...)
	must.OK(t, err)
	random := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		got, _, err := evaluatedIn(t, random.Perm(len(all)), false, all...)
		must.OK(t, err)
		for name, text := range want {
			must.Equal(t, name+" differs with the order of the points", got[name], text)
		}
	}
}

// cells returns the columns of a table, by name.
func cells(t *testing.T, text string) map[string][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must.OK(t, err)
	columns := map[string][]string{}
	for _, row := range rows[1:] {
		for k, cell := range row {
			columns[rows[0][k]] = append(columns[rows[0][k]], cell)
		}
	}
	return columns
}

func TestTables(t *testing.T) {
	all := append(slabs(283, 293, 303, 313), doubtful(slab(323)), seeded(slab(303), 2), single(slab(353)))
	phasesIn(all[5])["cden_mg_mL"] = phasesIn(all[5])["cden_mg_mL"].(float64) + 40
	bounded(all[0], 8)
	files, _, err := evaluated(t, false, all...)
	must.OK(t, err)
	got := cells(t, files[tableFile])
	for name, want := range map[string][]string{
		"job":              {"s1", "s2", "s3", "s6", "s4", "s5", "s7"},
		"used":             {"true", "true", "true", "true", "true", "false", "false"}, // s3 and s6 are replicas: the same conditions with different seeds
		"cdil_below_mg_mL": {"8", "", "", "", "", "", ""},
		"dG_below_kT":      {"-3.5", "", "", "", "", "", ""},
	} {
		must.Equal(t, name, got[name], want)
	}
	for i := range got["job"] {
		kT, err := strconv.ParseFloat(got["dG_kT"][i], 64)
		if err != nil {
			continue // no free energy
		}
		at, _ := strconv.ParseFloat(got["temperature_K"][i], 64)
		joules, err := strconv.ParseFloat(got["dG_kJ_mol"][i], 64)
		if want := kT * 8.314462618e-3 * at; err != nil || math.Abs(joules/want-1) > 1e-4 {
			t.Errorf("%s: %g kT is %q kJ/mol, want %g", got["job"][i], kT, got["dG_kJ_mol"][i], want)
		}
	}
	var deviations []float64
	for i, text := range got["deviation"] {
		d, err := strconv.ParseFloat(text, 64)
		if (err == nil) != (got["used"][i] == "true") {
			t.Errorf("%s: used %s, and the deviation is %q", got["job"][i], got["used"][i], text)
		}
		deviations = append(deviations, d)
	}
	// The dense concentrations of s3 and s6 differ by 40, and their standard errors are 4
	// (dense) and 1 (dilute).
	if apart := deviations[3] - deviations[2]; math.Abs(apart-40/math.Hypot(4, 1)) > 1e-3 {
		t.Errorf("deviations of replicas differ by %g: %g", apart, deviations)
	}
}

// Far below Tc, the law can give a negative dilute concentration, which the curve omits.
func TestCurveHasNoNegativeConcentration(t *testing.T) {
	all := slabs(283, 293, 303, 313, 323, 331)
	for _, s := range all {
		f := phasesIn(s)
		f["cdil_mg_mL"] = 0.1
	}
	files, _, err := evaluated(t, false, all...)
	must.OK(t, err)
	got, empty := cells(t, files[curveFile]), 0
	for i, text := range got["cdil_mg_mL"] {
		if v, err := strconv.ParseFloat(text, 64); text == "" {
			empty++
		} else if err != nil || v < 0 {
			t.Errorf("%q at %s K", text, got["temperature_K"][i])
		}
	}
	if last := len(got["cdil_mg_mL"]) - 1; empty == 0 || got["cdil_mg_mL"][last] == "" || got["cdil_mg_mL"][last] != got["cden_mg_mL"][last] {
		t.Errorf("%d are left out; at Tc the phases are %q and %q", empty, got["cdil_mg_mL"][last], got["cden_mg_mL"][last])
	}
}

func TestSettings(t *testing.T) {
	s, faults := Parse([]byte(`{"points":["job:a/@summary","inputs/b.json"],"use_unconverged":true}`))
	if len(faults) > 0 || !s.Unconverged || len(s.Points) != 2 {
		t.Errorf("%+v, %v", s, faults)
	}
	for text, want := range map[string][]string{
		`[]`:            {"settings must be one JSON object"},
		`{}`:            {"give points"},
		`{"points":[]}`: {"give points"},
		`{"points":"job:a/@summary","use_unconverged":1}`:     {"points must be a list of files", "use_unconverged must be true or false"},
		`{"points":["a",5,"a"],"point":1}`:                    {"item 2 of points must be text", `points 1 and 3 are both "a"`, "point"},
		`{"points":[` + strings.Repeat(`"a",`, 100) + `"a"]}`: {"there are 101 points; at most 100 are compared"},
	} {
		_, faults := Parse([]byte(text))
		for _, w := range want {
			if !slices.ContainsFunc(faults, func(f fault.Field) bool { return strings.Contains(f.Msg, w) }) {
				t.Errorf("%.60s: %v; no %q", text, faults, w)
			}
		}
	}
}

func TestNamesOfPoints(t *testing.T) {
	got := jobNames([]string{"job:a/@summary", "inputs/summary.json", "inputs/summary.json", "job:a/summary.json"}, []string{"/w/1.json", "/w/summary.json", "/w/summary.json", "/w/2.json"})
	if want := []string{"a", "summary.json", "summary.json (2)", "a (2)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := jobNames([]string{"job:a/@summary"}, []string{"/w/x.json", "/w/y.json"}); !slices.Equal(got, []string{"x.json", "y.json"}) {
		t.Errorf("%q", got)
	}
}
