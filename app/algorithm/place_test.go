package algorithm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

func TestMissingPlacesOfPrograms(t *testing.T) {
	conda := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(conda, "bin"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(conda, "bin", "predict"), nil, 0o700))
	here := placement.Machine{CPUs: 1, Local: true, Site: map[string]string{"env": conda, "gone": "/nosuch"}, MissingEnvironment: func(s protocol.Sandbox) []string {
		if s.Image == "localhost/here:1" || strings.Join(s.Modules, "") == "there" {
			return nil
		}
		return []string{"what " + s.Image + strings.Join(s.Modules, "") + " needs is not here"}
	}}
	tests := []struct {
		name, text, want string
		machine          placement.Machine
	}{
		{"image", "[container]\nimage = \"localhost/here:1\"\n", "", here},
		{"image not here", "[container]\nimage = \"docker://localhost/a:1\"\n", "what docker://localhost/a:1 needs is not here", here},
		{"image of nodes", "[container]\nimage = \"localhost/a:1\"\n", "", placement.Machine{}},
		{"modules", "modules = [\"there\"]\n", "", here},
		{"modules not here", "modules = [\"a\"]\n", "what a needs is not here", here},
		{"conda", "conda = \"" + conda + "\"\n", "", here},
		{"program not in conda", "command = [\"nosuch\"]\nconda = \"" + conda + "\"\n", "the program nosuch is not installed", here},
		{"program of a script", "command = [\"true\"]\nprograms = [\"cp\", \"nosuch\"]\n", "the program nosuch is not installed", here},
		{"program of a script, on nodes", "command = [\"true\"]\nprograms = [\"nosuch\"]\n", "", placement.Machine{}},
		{"conda of the site", "conda = \"{site.env}\"\n", "", here},
		{"conda of a site that is gone", "command = [\"true\"]\nconda = \"{site.gone}/env\"\n", "the conda environment /nosuch/env does not exist", here},
		{"script of the site", "command = [\"sh\", \"{site.env}/bin/predict\"]\n", "", here},
		{"script that is gone", "command = [\"sh\", \"{site.env}/run.sh\", \"/nosuch\"]\n", "the script " + conda + "/run.sh, which a command runs, does not exist", here},
		{"words for a shell", "command = [\"sh\", \"-c\", \"/nosuch/run.sh\"]\n", "", here},
		{"no conda", "command = [\"true\"]\nconda = \"/nosuch/env\"\n", "the conda environment /nosuch/env does not exist", here},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if !strings.Contains(text, "command") {
				text = "command = [\"predict\"]\n" + text
			}
			a := parseOK(t, "format = 1\ntype = \"demo\"\nversion = \"1\"\n"+text)
			if got := strings.Join(a.Missing(tt.machine), "|"); got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("missing %q, want %q", got, tt.want)
			}
		})
	}
}
