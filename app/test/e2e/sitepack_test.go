package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// podmanStandIn is a script in place of Podman, which saves an image as its name.
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
	archive := filepath.Join(here.dir, "site.tar")
	out, errs, code := here.run("pack", "weighing.toml", "tm-align", "--image", "localhost/fold:1", "-o", archive)
	if code != 0 || !strings.Contains(errs, "2 algorithms and 1 image") || strings.TrimSpace(out) != archive {
		t.Fatalf("pack: exit code %d: %s%s", code, out, errs)
	}
	if left, err := filepath.Glob(filepath.Join(here.dir, ".molrun-pack-*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}

	// There, nothing but the archive is needed.
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
	if err != nil || !strings.Contains(string(types), "weighing") {
		t.Errorf("the algorithms there: %v: %s", err, types)
	}
	if got := readFile(t, filepath.Join(dir, "assets", "weights", "model.ckpt")); got != "weights" {
		t.Errorf("the asset is %q", got)
	}
	if got := readFile(t, filepath.Join(dir, "images", "localhost-fold-1.tar")); got != "localhost/fold:1\n" {
		t.Errorf("the image is %q", got)
	}

	fails := func(says string, args ...string) {
		t.Helper()
		if out, errs, code := here.run(args...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("molrun %s: exit code %d: %s%s; want %q", strings.Join(args, " "), code, out, errs, says)
		}
	}
	fails("is there already", "unpack", archive, dir)
	fails("image not known", "pack", "--image", "localhost/other", "-o", archive+".2")
	fails("there is no algorithm", "pack", "absent", "-o", archive+".2")
	fails("named twice", "pack", "tm-align", "tm-align", "-o", archive+".2")

	// An archive that is damaged or cut off leaves nothing.
	text := []byte(readFile(t, archive))
	at := bytes.LastIndex(text, []byte("localhost/fold:1\n"))
	changed := bytes.Clone(text)
	changed[at]++
	for name, content := range map[string][]byte{"changed": changed, "short": text[:len(text)/2], "none": nil} {
		path := filepath.Join(here.dir, name+".tar")
		must.OK(t, os.WriteFile(path, content, 0o600))
		above := t.TempDir()
		fails("opy", "unpack", path, filepath.Join(above, "new")) // "copy it again"
		if entries, err := os.ReadDir(above); err != nil || len(entries) > 0 {
			t.Errorf("%s: %d entries are left, %v", name, len(entries), err)
		}
	}
}
