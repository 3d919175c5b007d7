package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// siteFile is an algorithm that reads a file of the site and runs only in a sandbox.
const siteFile = `
format = 1
type = "predict"
version = "1"
status = "untested"
command = ["cp", "{site.models}/weights.bin", "{out}/"]
makes = ["{out}/weights.bin"]

[resources]
memory = "64MiB"

[sandbox]
required = true

[[assets]]
name = "weights"
path = "{site.models}/weights.bin"
size = 6
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
from = "https://example.org/weights"
`

func TestAlgorithmsNeedWhatTheSiteNamesAndASandbox(t *testing.T) {
	t.Parallel()
	models := t.TempDir()
	s := startServer(t, serverOptions{
		config:     fmt.Sprintf("[runner]\nsandbox = \"off\"\n\n[site.paths]\nmodels = %q\n", models),
		algorithms: map[string]string{"predict.toml": siteFile},
	})
	u := s.user("lab", "ann@lab.example")
	view := func() (v struct {
		Ready   bool
		Status  string
		Missing []string
	},
	) {
		u.do("GET", "/algorithms/predict", nil).want(200).into(&v)
		return v
	}
	if v := view(); v.Ready || v.Status != "untested" || len(v.Missing) != 2 || !strings.Contains(v.Missing[0], "weights (6 bytes) is not at "+models) || !strings.Contains(v.Missing[1], "runner.sandbox is off") {
		t.Errorf("%+v", v)
	}
	must.OK(t, os.WriteFile(filepath.Join(models, "weights.bin"), []byte("heavy\n"), 0o600))
	u.do("POST", "/submit-job", `{"jobName":"a","type":"predict","settings":{}}`).detail("body.type")
	must.Contain(t, "list", s.ok("algorithms", "list"), "no: its programs require a sandbox")

	s.setConfig(`"off"`, `"auto"`)
	s.stop()
	s.start()
	if !s.sandboxed() {
		t.Skip("skipped: no sandbox here")
	}
	u.submit("b", "predict", "{}")
	u.completed("b")
	u.wantResult("b", "weights.bin", "heavy\n")
	file := filepath.Join(s.dir, "algorithms", "predict.toml")
	for flag, says := range map[string]string{"--full=false": " and ready on this machine", "--full": "has the wrong SHA-256"} {
		must.Contain(t, fmt.Sprintf("check %s", flag), s.ok("algorithms", "check", file, flag), says)
	}
	must.Contain(t, "show", s.ok("algorithms", "show", "predict"), "untested: written from")
}

// setConfig replaces a string in the configuration.
func (s *instance) setConfig(old, now string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "config.toml")
	text := must.Read(s.t, path)
	if !strings.Contains(text, old) {
		s.t.Fatalf("the configuration has no %q", old)
	}
	must.OK(s.t, os.WriteFile(path, []byte(strings.Replace(text, old, now, 1)), 0o600))
}
