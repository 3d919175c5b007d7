package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
)

func TestSettingsStandInOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	must(t, os.WriteFile(file, []byte("listen = \":1\"\n[runner]\ncpus = 3\nkeep_failed = \"2d\"\nmemory = \"1.5GiB\"\ngpus = \"0,1\"\n"), 0o600))
	c, err := app.LoadConfig(file, false, []string{"MOLRUN_RUNNER_CPUS=5", "MOLRUN_RUNNER_GRACE=3s", "HOME=/x", "MOLRUN_CONFIG=" + file})
	must(t, err)
	must(t, c.Check())
	if c.Listen != ":1" || c.Runner.CPUs != 5 || time.Duration(c.Runner.KeepFailed) != 48*time.Hour ||
		c.Runner.Memory != 3<<29 || len(c.Runner.GPUs) != 2 || time.Duration(c.Runner.Grace) != 3*time.Second {
		t.Errorf("got\n%s", c.Text())
	}
	if c.Data != "molrun-data" {
		t.Errorf("default of data: %q", c.Data)
	}
}

func TestUnknownAndFaultySettingsAreErrors(t *testing.T) {
	tests := []struct{ name, text, variable, want string }{
		{"unknown", "lisen = 1\n", "", `config.toml:1: there is no setting "lisen"; did you mean "listen"?`},
		{"unknown in a section", "[runner]\n\ncpu = 1\n", "", `config.toml:3: there is no setting "runner.cpu"; did you mean "runner.cpus"?`},
		{"wrong type", "[runner]\ncpus = \"many\"\n", "", "config.toml:2"},
		{"no time", "[runner]\ngrace = \"soon\"\n", "", "config.toml:2"},
		{"not TOML", "listen = \n", "", "config.toml:1"},
		{"unknown variable", "", "MOLRUN_LISEN=1", `did you mean "MOLRUN_LISTEN"?`},
		{"faulty variable", "", "MOLRUN_RUNNER_CPUS=many", "MOLRUN_RUNNER_CPUS"},
		{"unknown sandbox", "[runner]\nsandbox = \"yes\"\n", "", "runner.sandbox"},
		{"relative cgroup", "[runner]\ncgroup = \"molrun.slice\"\n", "", "runner.cgroup"},
		{"too few processes", "[runner]\nprocesses = 3\n", "", "runner.processes"},
		{"files too small", "[runner]\nfile_size = \"1kB\"\n", "", "runner.file_size"},
		{"bad level", "[log]\nlevel = \"loud\"\n", "", "log.level"},
		{"bad address", "public_url = \"lab.example\"\n", "", "public_url"},
		{"links too long", "[links]\nupload = \"30d\"\n", "", "links.upload"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.toml")
			must(t, os.WriteFile(file, []byte(tt.text), 0o600))
			c, err := app.LoadConfig(file, false, []string{tt.variable})
			if err == nil {
				err = c.Check()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
