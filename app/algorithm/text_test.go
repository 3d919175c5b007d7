package algorithm

import (
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

const textsFile = fileHead + `
command = ["run", "{work}/em.mdp"]

[[texts]]
file = "{work}/em.mdp"
text = '''
integrator = {{if eq .settings.method "fast"}}steep{{else}}cg{{end}}
nsteps = {{.derived.nsteps}}
threads = {{.cpus}}
groups = {{join " " .settings.residues}}
{{- range $i, $r := .settings.residues}}
residue {{$i}} = {{$r}}
{{- end}}
{{with .settings.rounds}}rounds = {{.}}
{{end -}}
structure = {{.files.structure}}
half = {{.settings.residues | json}}{{upper "x"}}
'''

[[texts]]
file = "{out}/deep/opt.txt"
if = "settings.opt"
text = "{{.settings.opt}}"

[derived]
nsteps = "settings.scale * 1e6"

[[parameters]]
name = "scale"
type = "number"
default = 2.5
` + fileParameters

func TestTextsAreMadeFromSettings(t *testing.T) {
	a := parseOK(t, textsFile)
	run := expandWith(t, a, `{"structure":"x","opt":"{{.settings.scale}} {out}"}`, placement.Resources{CPUs: 3}, map[string][]string{"structure": {"/w/in/structure.cif"}})
	want := map[string]string{
		"/w/em.mdp": "integrator = steep\nnsteps = 2500000\nthreads = 3\ngroups = 3 14\nresidue 0 = 3\nresidue 1 = 14\n" +
			"structure = /w/in/structure.cif\nhalf = [3,14]X\n",
		"/w/out/deep/opt.txt": "{{.settings.scale}} {out}",
	}
	must.Equal(t, "texts", run.Texts, want)
	run = expandWith(t, a, `{"structure":"x","rounds":12345678,"method":"exact"}`, placement.Resources{CPUs: 1}, map[string][]string{"structure": {"/w/in/structure.cif"}})
	if got := run.Texts["/w/em.mdp"]; len(run.Texts) != 1 || !strings.Contains(got, "rounds = 12345678\n") || !strings.Contains(got, "integrator = cg\n") {
		t.Errorf("texts %q", run.Texts)
	}
}

func TestTextNeedsTheValuesThatItUses(t *testing.T) {
	for _, text := range []string{"{{.settings.rounds}}", "{{.files.structure}}", "{{index .settings.residues 9}}", "{{with .settings}}{{.rounds}}{{end}}"} {
		a := parseOK(t, fileHead+"command = [\"a\"]\n[[texts]]\nfile = \"{work}/x\"\ntext = '"+text+"'\n"+fileParameters)
		if run, err := a.Expand([]byte(`{"residues":[1]}`), placement.Resources{}, commandPaths); err == nil {
			t.Errorf("%s gives %q", text, run.Texts)
		}
	}
}

// The text follows four lines, so it begins at line 5.
func TestMistakesInTexts(t *testing.T) {
	text := func(rest string) string {
		return fileHead + "command = [\"a\"]\n[[texts]]\nfile = \"{work}/x\"\n" + rest + fileParameters
	}
	tests := []struct {
		name, text string
		want       []string
	}{
		{"elsewhere", fileHead + "command = [\"a\"]\n[[texts]]\nfile = \"/etc/passwd\"\ntext = \"\"" + fileParameters, []string{"6: file must be a file below {out} or {work}"}},
		{"no template", text("text = \"{{if}}\""), []string{"7: text: line 1: missing value for if"}},
		{"unknown function", text("text = \"{{env `x`}}\""), []string{`7: text: line 1: function "env" not defined`}},
		{"unknown setting", text("text = \"{{if .settings.optt}}{{end}}\""), []string{`7: no parameter is named "optt"; did you mean "opt"?`}},
		{"unknown setting in a range", text("text = \"{{range .settings.residues}}{{$.settings.optt}}{{end}}\""), []string{`7: no parameter is named "optt"`}},
		{"file as a setting", text("text = \"{{.settings.structure}}\""), []string{"7: text reads .settings.structure, but the parameter is a file: write .files.structure"}},
		{"unknown derived value", text("text = \"{{.derived.x}}\""), []string{`7: no derived value is named "x"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkMistakes(t, tt.text, tt.want...) })
	}
}
