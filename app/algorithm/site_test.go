package algorithm

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

// siteFile uses two site paths with an asset in each, and one asset with its own path.
const siteFile = `format = 1
type = "predict"
version = "1"
status = "untested"
command = ["{site.tools}/run", "--db", "{site.data}/db"]
[sandbox]
required = true
[[assets]]
name = "weights"
path = "{site.data}/weights.bin"
size = 10
from = "https://example.org/weights"
[[assets]]
name = "index"
path = "{site.data}/index"
size = "1GiB"
from = "the institute's server"
[[texts]]
file = "{work}/conf"
text = "cache = {{.site.cache}}"
`

func TestMissingSitePathsAreReported(t *testing.T) {
	a := parseOK(t, siteFile)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	site := map[string]string{}
	here := placement.Machine{Local: true, Site: site, NoSandbox: func() string { return "bwrap is not on PATH" }}
	lacks := func(want ...string) {
		t.Helper()
		got := a.Missing(here)
		if len(got) != len(want) {
			t.Errorf("missing %q, want %q", got, want)
			return
		}
		for i, says := range want {
			if !strings.Contains(got[i], strings.ReplaceAll(says, "DIR", dir)) {
				t.Errorf("missing %q, want %q", got[i], says)
			}
		}
	}
	lacks("no path for cache: set cache in [site.paths]", "no path for data", "no path for tools", "require a sandbox, which is not available: bwrap is not on PATH")
	here.NoSandbox = func() string { return "" }
	site["data"], site["tools"], site["cache"] = dir, dir, filepath.Join(dir, "cache")
	lacks("the program DIR/run does not exist", "DIR/cache does not exist: it is site.paths.cache in the configuration", "weights (10 bytes) is not at DIR/weights.bin: get it from https://example.org/weights", "index (1.0 GiB) is not at DIR/index")
	write("run", "#!/bin/sh\n")
	write("cache", "")
	write("weights.bin", "12345")
	must.OK(t, os.Mkdir(filepath.Join(dir, "index"), 0o700))
	lacks("weights at DIR/weights.bin has 5 bytes instead of 10 bytes")
	write("weights.bin", "1234567890")
	lacks()
	far := here
	far.Local, far.Site = false, map[string]string{"data": "/far", "tools": "/far"}
	if got := a.Missing(far); len(got) != 1 || !strings.Contains(got[0], "no path for cache") {
		t.Errorf("on another machine: %q", got)
	}

	c, err := NewCatalogue([]*File{a})
	must.OK(t, err)
	must.Fail(t, "the error", must.Error2(a.Expand([]byte("{}"), placement.Resources{}, Paths{Work: "/w", Out: "/w/out"})), "[site.paths]")
	c.SetSitePaths(site)
	run, err := a.Expand([]byte("{}"), placement.Resources{}, Paths{Work: "/w", Out: "/w/out"})
	if err != nil || run.Steps[0].Argv[0] != dir+"/run" || run.Texts["/w/conf"] != "cache = "+dir+"/cache" {
		t.Errorf("%+v, %v", run, err)
	}
	reach := a.AccessibleSandbox()
	if !reach.Required || !slices.Contains(reach.Read, dir) || !slices.Contains(reach.Read, dir+"/index") || len(a.Sandbox.Read) > 0 {
		t.Errorf("%+v", reach)
	}
	if v := a.Summary(nil, nil); v.Status != "untested" {
		t.Errorf("status %q", v.Status)
	}
}

func TestMemoryOfGPUs(t *testing.T) {
	a := parseOK(t, "format = 1\ntype = \"g\"\nversion = \"1\"\ncommand = [\"true\"]\n[resources]\ngpus = 1\ngpu_memory = \"24GiB\"\n")
	for have, ready := range map[int64]bool{0: true, 8 << 30: false, 23028 << 20: true, 80 << 30: true} {
		m := placement.Machine{GPUs: 1, Local: true, GPUMemory: func() int64 { return have }}
		if missing := a.Missing(m); (len(missing) == 0) != ready || !ready && missing[0] != "it needs GPUs with 24.0 GiB of memory, but one has only 8.0 GiB" {
			t.Errorf("%d: %q", have, missing)
		}
	}
	for text, says := range map[string]string{`"24"`: "", `"much"`: "gpu_memory \"much\" is not a size", "5": "gpu_memory must be"} {
		_, mistakes := Parse("g.toml", []byte("format = 1\ntype = \"g\"\nversion = \"1\"\ncommand = [\"true\"]\n[resources]\ngpu_memory = "+text+"\n"))
		if (says == "") != (mistakes == nil) || says != "" && !strings.HasPrefix(mistakes[0].String(), "g.toml:6: "+says) {
			t.Errorf("%s: %v", text, mistakes)
		}
	}
}

func TestVersionOfTheProgramIsAsked(t *testing.T) {
	head := "format = 1\ntype = \"g\"\nversion = \"1\"\ncommand = [\"true\"]\n"
	for text, says := range map[string]string{
		"version_command = [\"a\"]\n":                                     "5: version_command and version_pattern go together",
		"version_pattern = \"a\"\n":                                       "5: version_command and version_pattern go together",
		"version_command = []\nversion_pattern = \"a\"\n":                 "5: version_command needs at least",
		"version_command = [\"a\", \"{out}\"]\nversion_pattern = \"a\"\n": "5: {out} is not available here",
		"probe = []\n":                 "5: probe needs at least",
		"probe = [\"a\", \"{out}\"]\n": "5: {out} is not available here",
		"version_command = [\"a\"]\nversion_pattern = \"(\"\n": "6: version_pattern",
	} {
		if _, mistakes := Parse("g.toml", []byte(head+text)); len(mistakes) == 0 || !strings.HasPrefix(mistakes[0].String(), "g.toml:"+says) {
			t.Errorf("%s: %v, want %s", text, mistakes, says)
		}
	}
	a := parseOK(t, head+"version_command = [\"{site.tools}/a\", \"--version\"]\nversion_pattern = 'v(\\d)'\n")
	if q, ok := a.VersionProbe("/molrun"); ok {
		t.Errorf("asked %q without the site's path", q.Argv)
	}
	a.site = map[string]string{"tools": "/opt/tools"}
	if q, ok := a.VersionProbe("/molrun"); !ok || strings.Join(q.Argv, " ") != "/opt/tools/a --version" || !slices.Contains(q.Sandbox.Read, "/opt/tools") {
		t.Errorf("%+v, %v", q, ok)
	}
}

func TestSizesOfAssetsMayBeRounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	must.OK(t, os.WriteFile(path, make([]byte, 1000), 0o600))
	for _, tt := range []struct {
		size  int64
		about bool
		right bool
	}{{1000, false, true}, {999, false, false}, {1050, true, true}, {955, true, true}, {1100, true, false}, {900, true, false}, {0, false, true}} {
		a := Asset{Name: "a", Size: tt.size, about: tt.about}
		if got := a.problem(path); (got == "") != tt.right {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestDamagedAssetsAreFoundByTheirDigest(t *testing.T) {
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("right"))
	text := strings.Replace(siteFile, "size = 10\n", "sha256 = \""+hex.EncodeToString(sum[:])+"\"\n", 1)
	a := parseOK(t, text)
	site := map[string]string{"data": dir}
	for _, tt := range []struct{ text, says string }{{"", ""}, {"right", ""}, {"wrong", "weights at " + dir + "/weights.bin has the wrong SHA-256"}} {
		if tt.text != "" {
			must.OK(t, os.WriteFile(filepath.Join(dir, "weights.bin"), []byte(tt.text), 0o600))
		}
		got := strings.Join(a.DamagedAssets(t.Context(), site), "\n")
		if !strings.HasPrefix(got, tt.says) || (got == "") != (tt.says == "") {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
}

func TestMistakesInSiteSettings(t *testing.T) {
	head := "format = 1\ntype = \"t\"\nversion = \"1\"\n"
	asset := head + "command = [\"true\"]\n[[assets]]\nname = \"a\"\n"
	for text, says := range map[string]string{
		head + "command = [\"{site}/x\"]\n":                                                                                "4: {site} needs a name from [site.paths]",
		head + "command = [\"x\", \"{site.a b}\"]\n":                                                                       "4: {site.a b} must have a name of letters",
		head + "conda = \"env\"\ncommand = [\"x\"]\n":                                                                      "4: conda must be the absolute path of an environment",
		head + "conda = \"{out}\"\ncommand = [\"x\"]\n":                                                                    "4: {out} is not available here; available are {site}",
		head + "conda = \"/a/../b\"\ncommand = [\"x\"]\n":                                                                  "4: conda must be the absolute path of an environment",
		head + "status = \"new\"\ncommand = [\"x\"]\n":                                                                     "4: status must be",
		asset + "path = \"x\"\nsize = 1\nfrom = \"y\"\n":                                                                   "7: path must be absolute or begin with a site path",
		asset + "path = \"{out}/x\"\nsize = 1\nfrom = \"y\"\n":                                                             "7: {out} is not available here; available are {site}",
		asset + "path = \"/x\"\nfrom = \"y\"\n":                                                                            "5: [[assets]] needs size or sha256",
		asset + "path = \"/x\"\nsize = 1\n":                                                                                "5: [[assets]] needs from",
		asset + "path = \"/x\"\nfrom = \"y\"\nfetch = \"the web\"\n":                                                       "9: fetch \"the web\" is not a file URL",
		asset + "path = \"/x\"\nfrom = \"y\"\nfetch = [\"tar\", \"{out}\"]\n":                                              "9: {out} is not available here",
		asset + "path = \"/x\"\nsize = \"big\"\nfrom = \"y\"\n":                                                            "8: size \"big\" is not a size",
		asset + "path = \"/x\"\nsha256 = \"AB\"\nfrom = \"y\"\n":                                                           "8: sha256 must be 64 hexadecimal digits",
		asset + "path = \"/x\"\nsize = 1\nfrom = \"y\"\n[[assets]]\nname = \"a\"\npath = \"/y\"\nsize = 2\nfrom = \"z\"\n": "10: two assets are named \"a\"",
	} {
		_, mistakes := Parse("t.toml", []byte(text))
		if len(mistakes) == 0 || !strings.HasPrefix(mistakes[0].String(), "t.toml:"+says) {
			t.Errorf("%s\n%v, want %s", text, mistakes, says)
		}
	}
}

func TestProgramsOfAnEnvironmentOfTheSiteFindOneAnother(t *testing.T) {
	for text, want := range map[string]string{
		`conda = "{site.env}"` + "\n" + `command = ["python"]`:       "/opt/env",
		`conda = "{site.env}/boltz"` + "\n" + `command = ["python"]`: "/opt/env/boltz",
		`command = ["{site.env}/bin/python"]`:                        "/opt/env",
		`command = ["{site.env}/run"]`:                               "",
		`command = ["true"]`:                                         "",
	} {
		a := parseOK(t, "format = 1\ntype = \"t\"\nversion = \"1\"\n"+text+"\n")
		a.site = map[string]string{"env": "/opt/env"}
		must.Equal(t, text, a.AccessibleSandbox().Conda, want)
	}
}

func TestCommandsNameFiles(t *testing.T) {
	a, mistakes := Parse("n.toml", []byte(`format = 1
type = "n"
version = "1"
command = ["python3", "/home/ann/fold.py", "{settings.path}", "x/y", "/home/ann/{settings.path}", "--in=/home/ann/a", { if = "settings.on", args = ["/home/ann/b"], else = ["/home/ann/../c"] }]
probe = ["sh", "/home/ann/probe.sh"]

[[parameters]]
name = "path"
type = "string"
default = "/home/ann/secret"

[[parameters]]
name = "on"
type = "boolean"
default = false
`))
	if mistakes != nil {
		t.Fatal(mistakes)
	}
	want := []string{"/home/ann/probe.sh", "/home/ann/fold.py", "/home/ann/b"}
	must.Equal(t, "what has names in the sandbox", a.AccessibleSandbox().Named, want)
}
