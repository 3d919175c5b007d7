package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
)

// neverending contains the settings of a job that must be canceled.
const neverending = `{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"],"names":["Hst5"],"steps":1e8,"pH":4,"replicas":2,"cores":%d}`

func TestJobShowsResultsOfSimulation(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.submit("one", "cg-idp", `{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"],"steps":20000}`)
	u.submit("two", "cg-idp", `{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY","GSGSGSGS"],"names":["Hst5","linker"],"steps":20000}`)
	one := u.completed("one").Metrics.Results
	checkFigures(t, "one sequence", one)
	if one["nu"] == nil || one["rg_nm"].(float64) < 0.9 || one["rg_nm"].(float64) > 2 {
		t.Errorf("Rg and nu of 24 residues: %v", one)
	}
	two, _ := u.completed("two").Metrics.Results["sequences"].(map[string]any)
	if diff := cmp.Diff([]string{"Hst5", "linker"}, sortedNames(two)); diff != "" {
		t.Fatalf("sequences -want +got:\n%s", diff)
	}
	for name, figures := range two {
		checkFigures(t, name, figures.(map[string]any))
	}
	if nu := two["linker"].(map[string]any)["nu"]; nu != nil {
		t.Errorf("nu of eight residues is %v", nu)
	}
	if one["rg_nm"] != two["Hst5"].(map[string]any)["rg_nm"] {
		t.Errorf("Hst5 alone has %v, in company %v", one["rg_nm"], two["Hst5"])
	}
}

// completed waits for a job, which must complete.
func (u user) completed(name string) record {
	u.t.Helper()
	j := u.finished(name)
	if j.Status != "COMPLETED" {
		u.t.Fatalf("%s: %+v", name, j.Failure)
	}
	return j
}

// wantResult checks a file of a job's result.
func (u user) wantResult(job, file, want string) {
	u.t.Helper()
	must.Equal(u.t, file+" of "+job, string(u.result(job, file)), want)
}

// checkFigures checks the names and signs of the metrics for one sequence.
func checkFigures(t *testing.T, of string, figures map[string]any) {
	t.Helper()
	want := []string{"converged", "nu", "nu_se", "ree_nm", "ree_se_nm", "rg_nm", "rg_se_nm", "steps_per_second"}
	must.Equal(t, "figures of "+of, sortedNames(figures), want)
	for _, name := range want {
		switch v := figures[name].(type) {
		case bool, nil:
		case float64:
			if v <= 0 {
				t.Errorf("%s: %s is %v", of, name, v)
			}
		default:
			t.Errorf("%s: %s is %v", of, name, v)
		}
	}
}

func TestSimulationReportsProgress(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.submit("j", "cg-idp", fmt.Sprintf(neverending, 1))
	j := u.until("j", "on its way", func(r record) bool { return r.Progress != nil && r.Progress.Fraction > 0 })
	if f := j.Progress.Fraction; f >= 0.5 {
		t.Errorf("fraction %v", f)
	}
	want := regexp.MustCompile(`^step \d+/100000000 \d+\.\d% replica 1/2 equilibrating Rg \d\.\d\d nm T \d+\.\d K \d+ ksteps/s ETA \S+`)
	if !want.MatchString(j.Progress.Text) {
		t.Errorf("progress %q, want %s", j.Progress.Text, want)
	}
	log := string(u.do("GET", "/jobs/j/logs", nil).want(200).body)
	for _, want := range []string{"1 sequence, 2 replicas each, 1 core; about ", "warning: in this model only histidine responds to pH"} {
		must.Contain(t, "the log of the running job", log, want)
	}
	u.do("POST", "/jobs/j/cancel", nil).want(200)
	if j := u.finished("j"); j.Failure.Code != "STOPPED" {
		t.Errorf("%+v", j.Failure)
	} else if j.Metrics.MaxRSSBytes == 0 { // shorter programs can end before their memory is measured
		t.Errorf("metrics: %+v", *j.Metrics)
	}
}

// twoChains has a short chain, which finishes quickly, and a long one.
var twoChains = `{"sequences":["GSGSGSGSGSGSGS","` + strings.Repeat("GSEKDRPQTN", 100) + `"],"names":["short","long"],"steps":6000,"seed":3}`

func TestSimulationResumesAfterMachineRestart(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[runner]\ncpus = 2\n"})
	u := s.user("lab", "ann@lab.example")
	id := u.submit("cut", "cg-idp", twoChains).JobID
	attempt := filepath.Join(s.data(), "jobs", id, "1")
	s.eventually("the short chain has its checkpoint", func() bool {
		found, err := filepath.Glob(filepath.Join(attempt, "work", "out", "short", "checkpoint.bin"))
		must.OK(t, err)
		return len(found) == 1
	})
	s.kill()
	s.killTasks()
	restartMachine(t, attempt)
	s.start()
	u.submit("whole", "cg-idp", twoChains)
	if cut, whole := u.completed("cut"), u.completed("whole"); cut.Attempts != 2 || whole.Attempts != 1 {
		t.Errorf("attempts: %d and, of the one that was not cut, %d", cut.Attempts, whole.Attempts)
	}
	log := string(u.do("GET", "/jobs/cut/logs", nil).want(200).body)
	if !strings.Contains(log, "short resumes from checkpoint.bin, with 1 of 1 replica finished and 6000 of 6000 steps done") {
		t.Errorf("the second attempt did not resume:\n%s", log)
	}
	must.Equal(t, "the outputs of the cut run", u.outputs("cut"), u.outputs("whole"))
}

// restartMachine makes an attempt look as if it had begun before the machine's last boot.
func restartMachine(t *testing.T, attempt string) {
	t.Helper()
	path := filepath.Join(attempt, "run.json")
	text, err := os.ReadFile(path)
	must.OK(t, err)
	bootID := regexp.MustCompile(`("bootId":\s*)"[^"]*"`)
	if !bootID.Match(text) {
		t.Fatalf("run.json names no boot: %s", text)
	}
	must.OK(t, os.WriteFile(path, bootID.ReplaceAll(text, []byte(`$1"00000000-0000-0000-0000-000000000000"`)), 0o600))
}

// timings matches values that differ between runs.
var timings = regexp.MustCompile(`"(steps_per_second|ns_per_day|wall_s)": ?[0-9.e+]+`)

// outputs returns the result files of a simulation, with timings removed.
func (u user) outputs(job string) map[string]string {
	u.t.Helper()
	files := unzip(u.t, u.result(job, ""))
	delete(files, "job.json")
	delete(files, "log.txt")
	for name, text := range files {
		if strings.HasSuffix(name, ".json") {
			files[name] = timings.ReplaceAllString(text, "")
		}
	}
	return files
}
