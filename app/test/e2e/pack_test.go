package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	text := must.Read(t, filepath.Join(folder, "algorithm.toml"))
	if !strings.Contains(text, `version_command = ["wc", "--version"]`) || strings.Contains(text, `version = "1" `) {
		t.Errorf("the skeleton did not query the version:\n%s", text)
	}
	if out, errs, code := s.run("algorithms", "check", folder); code != 0 || !strings.Contains(out, "valid and ready") {
		t.Errorf("check: exit code %d: %s%s", code, out, errs)
	}
	s.ok("algorithms", "test", folder)
	s.fails(exitInvalid, "already exists", "algorithms", "new", "wc", "--type", "count", "--dir", s.dir)
	for _, args := range [][]string{{"new", "a b"}, {"new", "wc", "--type", "../x"}} {
		if _, errs, code := s.run(append([]string{"algorithms"}, args...)...); code != exitInvalid {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	s.ok("algorithms", "new", "no-such-program-here", "--dir", s.dir)
}

// weighing is an algorithm file with an asset.
const weighing = `
format = 1
type = "weighing"
version = "1"
command = ["cat", "{site.weights}/model.ckpt"]

[[assets]]
name = "model"
path = "{site.weights}/model.ckpt"
size = 7
from = "https://weights.example"
`

// fixed is an algorithm file with an asset at a fixed path.
const fixed = `
format = 1
type = "fixed"
version = "1"
command = ["cat", "PATH"]

[[assets]]
name = "table"
path = "PATH"
size = 7
from = "https://weights.example"
`

// podmanStandIn is a script that replaces Podman. It saves an image as the image's name.
const podmanStandIn = `#!/bin/sh
[ "$1 $2" = "save -o" ] || exit 9
[ "$4" = localhost/fold:1 ] || { echo "$4: image not known" >&2; exit 125; }
echo "$4" > "$3"
`

func TestASiteTravelsInOneFile(t *testing.T) {
	t.Parallel()
	weights, bin := t.TempDir(), t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(weights, "model.ckpt"), []byte("weights"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(bin, "podman"), []byte(podmanStandIn), 0o700))
	here := unstarted(t, "[site.paths]\nweights = \""+weights+"\"\n")
	here.env = append(here.env, "PATH="+bin+":"+os.Getenv("PATH"))
	must.OK(t, os.WriteFile(filepath.Join(here.dir, "weighing.toml"), []byte(weighing), 0o600))
	table := filepath.Join(weights, "model.ckpt")
	must.OK(t, os.WriteFile(filepath.Join(here.dir, "fixed.toml"), []byte(strings.ReplaceAll(fixed, "PATH", table)), 0o600))
	archive := filepath.Join(here.dir, "site.tar")
	out, errs, code := here.run("pack", "weighing.toml", "mafft", "fixed.toml", "--image", "localhost/fold:1", "-o", archive)
	if code != 0 || !strings.Contains(errs, "3 algorithms and 1 image") || !strings.Contains(errs, "asset table is not packed; the other machine must have it at "+table) ||
		strings.TrimSpace(out) != archive {
		t.Fatalf("pack: exit code %d: %s%s", code, out, errs)
	}
	if left, err := filepath.Glob(filepath.Join(here.dir, ".molrun-pack-*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}

	// Everything that the other machine needs is in the archive.
	dir := filepath.Join(t.TempDir(), "molrun")
	must.OK(t, exec.Command("tar", "-xf", archive, "-C", here.dir, "molrun").Run())
	unpack := exec.Command(filepath.Join(here.dir, "molrun"), "unpack", archive, dir)
	unpack.Env = here.env
	said, err := unpack.Output()
	if err != nil {
		t.Fatalf("unpack: %v: %s", err, said)
	}
	for _, line := range []string{
		"podman load -i " + filepath.Join(dir, "images", "localhost-fold-1.tar") + "\n",
		filepath.Join(dir, "molrun") + " doctor --config " + filepath.Join(dir, "site.toml") + "\n",
	} {
		if !strings.Contains(string(said), line) {
			t.Errorf("unpack said %s, want %s", said, line)
		}
	}
	list := exec.Command(filepath.Join(dir, "molrun"), "algorithms", "list", "--config", filepath.Join(dir, "site.toml"))
	list.Env = here.env
	types, err := list.Output()
	if err != nil || !regexp.MustCompile(`(?m)^weighing .* yes\b`).Match(types) || !strings.Contains(string(types), "fixed") {
		t.Errorf("the algorithms there: %v: %s", err, types)
	}
	must.Equal(t, "the asset", must.Read(t, filepath.Join(dir, "assets", "weights", "model.ckpt")), "weights")
	shared := must.Read(t, filepath.Join(root, "app/algorithm/builtin/catalogue/lib/summary.awk"))
	must.Equal(t, "the script of the catalogue's lib", must.Read(t, filepath.Join(dir, "algorithms", "mafft", "summary.awk")), shared)
	must.Equal(t, "the image", must.Read(t, filepath.Join(dir, "images", "localhost-fold-1.tar")), "localhost/fold:1\n")

	fails := func(says string, args ...string) {
		t.Helper()
		if out, errs, code := here.run(args...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("molrun %s: exit code %d: %s%s; want %q", strings.Join(args, " "), code, out, errs, says)
		}
	}
	fails("already exists", "unpack", archive, dir)
	fails("image not known", "pack", "--image", "localhost/other", "-o", archive+".2")
	fails("there is no algorithm", "pack", "absent", "-o", archive+".2")
	fails("listed twice", "pack", "tm-align", "tm-align", "-o", archive+".2")

	// Unpacking a damaged or truncated archive leaves no files.
	text := []byte(must.Read(t, archive))
	at := bytes.LastIndex(text, []byte("localhost/fold:1\n"))
	changed := bytes.Clone(text)
	changed[at]++
	for name, content := range map[string][]byte{"changed": changed, "short": text[:len(text)/2], "none": nil} {
		path := filepath.Join(here.dir, name+".tar")
		must.OK(t, os.WriteFile(path, content, 0o600))
		above := t.TempDir()
		fails("opy", "unpack", path, filepath.Join(above, "new")) // "copy it again"
		if entries, err := os.ReadDir(above); err != nil || len(entries) > 0 {
			t.Errorf("%s: %d entries remain, %v", name, len(entries), err)
		}
	}
}
