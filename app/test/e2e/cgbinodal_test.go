package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// smallBinodal returns the example campaign with fewer chains and steps.
func smallBinodal(t *testing.T) string {
	t.Helper()
	text := must.Read(t, "../../client/examples/binodal.yaml")
	for _, each := range [][2]string{{"copies: 100", "copies: 12"}, {"[9, 9, 50]", "[9, 9, 30]"}, {"steps: 120000", "steps: 2000"}, {"sample_every: 250", "sample_every: 20"}} {
		if strings.Count(text, each[0]) != 1 {
			t.Fatalf("the example has %q no longer once", each[0])
		}
		text = strings.Replace(text, each[0], each[1], 1)
	}
	return text
}

// A single command runs the example campaign, with fewer chains and steps, from slabs to
// their binodal.
func TestBinodalExampleIsOneCommand(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
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
		must.Contain(t, "the table", table, "\n"+job+",")
	}
	shown := slices.DeleteFunc(u.viewsShown("lc-binodal"), func(name string) bool { return name == "curve" }) // the view needs a critical point
	must.Equal(t, "views", shown, []string{"plot", "binodal"})
	p.fails(exitUsage, "omit TYPE", "batch", "cg-condensate", "-i", "binodal.yaml")
	must.OK(t, os.WriteFile(filepath.Join(p.dir, "bad.yaml"), []byte("jobs: [{type: cg-idp, seting: 1}]\n"), 0o600))
	p.fails(exitUsage, `job 1 of jobs: unknown member "seting"`, "batch", "-i", "bad.yaml")
}
