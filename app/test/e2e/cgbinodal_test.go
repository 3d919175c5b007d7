package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// smallBinodal is the example of a campaign with fewer chains and steps.
func smallBinodal(t *testing.T) string {
	t.Helper()
	text := readFile(t, "../../client/examples/binodal.yaml")
	for _, each := range [][2]string{{"copies: 100", "copies: 12"}, {"[9, 9, 50]", "[9, 9, 30]"}, {"steps: 120000", "steps: 2000"}, {"sample_every: 250", "sample_every: 20"}} {
		if strings.Count(text, each[0]) != 1 {
			t.Fatalf("the example has %q no longer once", each[0])
		}
		text = strings.Replace(text, each[0], each[1], 1)
	}
	return text
}

// The example of a campaign, with fewer chains and steps, goes in one command from its slabs to
// their binodal.
func TestBinodalExampleIsOneCommand(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{config: "[runner]\ncpus = 2\n"}).user("lab", "ann@lab.example")
	p := u.person()
	must.OK(t, os.WriteFile(filepath.Join(p.dir, "binodal.yaml"), []byte(smallBinodal(t)), 0o600))
	if plan := p.ok("batch", "-i", "binodal.yaml", "--dry-run"); !strings.Contains(plan, `"batchName":"lc"`) || strings.Contains(plan, `"type":""`) || len(u.names(nil)) != 0 {
		t.Errorf("without a submission: %s, %q", plan, u.names(nil))
	}
	p.ok("batch", "-i", "binodal.yaml", "--wait")
	figures := u.completed("lc-binodal").Metrics.Results
	if figures["points"] != 5.0 || figures["over"] != "temperature" {
		t.Errorf("figures %v", figures)
	}
	table := string(u.do("GET", "/jobs/lc-binodal/files/binodal.csv", nil).want(200).body)
	for _, job := range []string{"lc-278,278", "lc-288,288", "lc-298,298", "lc-308,308", "lc-323,323"} {
		if !strings.Contains(table, "\n"+job+",") {
			t.Errorf("no row %q in\n%s", job, table)
		}
	}
	var all struct {
		Views []struct {
			Name  string
			Files []struct{ Path string }
		}
	}
	u.do("GET", "/jobs/lc-binodal/views", nil).want(200).into(&all)
	var shown []string
	for _, v := range all.Views {
		if len(v.Files) > 0 && v.Name != "curve" { // which takes a critical point
			shown = append(shown, v.Name)
		}
	}
	if want := []string{"plot", "binodal", "summary"}; !slices.Equal(shown, want) {
		t.Errorf("views %q, want %q", shown, want)
	}
	if _, errs, code := p.run("batch", "cg-condensate", "-i", "binodal.yaml"); code != exitUsage || !strings.Contains(errs, "leave out TYPE") {
		t.Errorf("a type beside a list of jobs: exit code %d: %s", code, errs)
	}
	must.OK(t, os.WriteFile(filepath.Join(p.dir, "bad.yaml"), []byte("jobs: [{type: cg-idp, seting: 1}]\n"), 0o600))
	if _, errs, code := p.run("batch", "-i", "bad.yaml"); code != exitUsage || !strings.Contains(errs, `job 1 of jobs: there is no member "seting"`) {
		t.Errorf("a mistake in a list of jobs: exit code %d: %s", code, errs)
	}
}

// Points that do not go together fail with the jobs and what they differ in; a series without
// a critical temperature is a result.
func TestBinodalSaysWhatDoesNotGoTogether(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{config: "[runner]\ncpus = 2\n"}).user("lab", "ann@lab.example")
	slab := func(more string) string {
		return `{"components":[{"sequence":"GFYRGSYD","copies":10}],"box_nm":[9,9,30],"steps":1000,"sample_every":20,"cores":2` + more + `}`
	}
	u.submit("acid", "cg-condensate", slab(`,"pH":5`))
	u.submit("neutral", "cg-condensate", slab(`,"temperature_K":310`))
	u.submit("salty", "cg-condensate", slab(`,"ionic_strength_M":0.5`))
	u.submit("plain", "cg-condensate", slab(``))
	u.submit("mixed", "cg-binodal", `{"points":["job:acid/@summary","job:neutral/summary.json"]}`)
	u.submit("salts", "cg-binodal", `{"points":["job:salty/@summary","job:plain/@summary"]}`)
	u.submit("wrong", "cg-binodal", `{"points":["job:plain/metrics.json"]}`)
	if figures := u.completed("salts").Metrics.Results; figures["over"] != "ionic_strength" || figures["Tc_K"] != nil || figures["points"] != 2.0 {
		t.Errorf("over salt: %v", figures)
	}
	for job, want := range map[string]string{
		"mixed": "The points do not make a binodal: the jobs differ in pH: 5 (acid); 7 (neutral)",
		"wrong": "plain is no summary.json of a job of cg-condensate",
	} {
		if got := u.finished(job).Failure; got == nil || !strings.Contains(got.Message, want) {
			t.Errorf("%s: %+v, want %q", job, got, want)
		}
	}
	for settings, want := range map[string]string{
		`{}`:                               "points",
		`{"points":[]}`:                    "points",
		`{"points":["job:plain/@nosuch"]}`: "nosuch",
		`{"points":["job:plain/@summary","job:plain/@summary"]}`: "points names a result twice",
		`{"points":["job:plain/@summary"],"use_unconverged":1}`:  "use_unconverged",
	} {
		got := u.do("POST", "/submit-job", `{"jobName":"j","type":"cg-binodal","settings":`+settings+`}`).want(422).details()
		if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, want) }) {
			t.Errorf("%s: %q", settings, got)
		}
	}
}
