package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestNewAlgorithmIsCorrectAndRuns(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "")
	out, errs, code := s.run("algorithms", "new", "wc", "--type", "count", "--dir", s.dir)
	folder := strings.TrimSpace(out)
	if code != 0 || folder != filepath.Join(s.dir, "count") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	text := readFile(t, filepath.Join(folder, "algorithm.toml"))
	if !strings.Contains(text, `version_command = ["wc", "--version"]`) || strings.Contains(text, `version = "1" `) {
		t.Errorf("the skeleton has not asked for the version:\n%s", text)
	}
	if out, errs, code := s.run("algorithms", "check", folder); code != 0 || !strings.Contains(out, "correct and ready") {
		t.Errorf("check: exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := s.run("algorithms", "test", folder); code != 0 {
		t.Errorf("test: exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := s.run("algorithms", "new", "wc", "--type", "count", "--dir", s.dir); code != exitInvalid || !strings.Contains(errs, "is there already") {
		t.Errorf("once more: exit code %d: %s", code, errs)
	}
	for _, args := range [][]string{{"new", "a b"}, {"new", "wc", "--type", "../x"}} {
		if _, errs, code := s.run(append([]string{"algorithms"}, args...)...); code != exitInvalid {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	if out, errs, code := s.run("algorithms", "new", "no-such-program-here", "--dir", s.dir); code != 0 {
		t.Errorf("a program that is not installed: exit code %d: %s%s", code, out, errs)
	}
}

// weighing is an algorithm with an asset.
const weighing = `
format = 2
type = "weighing"
version = "1"
command = ["cat", "{site.weights}/model.ckpt"]

[[assets]]
name = "model"
path = "{site.weights}/model.ckpt"
size = 7
from = "https://weights.example"
`

func TestAlgorithmsTravelWithTheirAssets(t *testing.T) {
	t.Parallel()
	weights := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(weights, "model.ckpt"), []byte("weights"), 0o600))
	here := unstarted(t, "[site.paths]\nweights = \""+weights+"\"\n")
	must.OK(t, os.WriteFile(filepath.Join(here.dir, "weighing.toml"), []byte(weighing), 0o600))
	archive := filepath.Join(here.dir, "weighing.tar")
	if out, errs, code := here.run("algorithms", "pack", "weighing.toml", "-o", archive); code != 0 || !strings.Contains(errs, "1 assets") {
		t.Fatalf("pack: exit code %d: %s%s", code, out, errs)
	}
	there := unstarted(t, "algorithms = \"algorithms\"\n")
	if _, errs, code := there.run("algorithms", "unpack", archive); code != exitInvalid || !strings.Contains(errs, "[site.paths] has no weights") {
		t.Errorf("without a place: exit code %d: %s", code, errs)
	}
	out, errs, code := there.run("algorithms", "unpack", archive, "--assets-dir", "data")
	if code != 0 || !strings.Contains(errs, "weights = \""+filepath.Join(there.dir, "data", "weights")+"\"") || strings.TrimSpace(out) != filepath.Join(there.dir, "algorithms", "weighing") {
		t.Fatalf("unpack: exit code %d: %s%s", code, out, errs)
	}
	if got := readFile(t, filepath.Join(there.dir, "data", "weights", "model.ckpt")); got != "weights" {
		t.Errorf("the asset is %q", got)
	}
	must.OK(t, os.WriteFile(filepath.Join(there.dir, "config.toml"), []byte("algorithms = \"algorithms\"\n[site.paths]\nweights = \""+filepath.Join(there.dir, "data", "weights")+"\"\n"), 0o600))
	if out, _, _ := there.run("algorithms", "list"); !strings.Contains(out, "weighing") || !strings.Contains(strings.Split(strings.SplitAfter(out, "weighing")[1], "\n")[0], "yes") {
		t.Errorf("the algorithm is not ready there:\n%s", out)
	}
	if out, errs, code := here.run("algorithms", "pack", "tm-align", "-o", filepath.Join(here.dir, "tm.tar")); code != 0 {
		t.Errorf("pack of the catalogue: exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := here.run("algorithms", "pack", "absent"); code != exitMissing {
		t.Errorf("pack of nothing: exit code %d: %s", code, errs)
	}
}
