package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// exampleTypes are stand-ins that replace the catalogue types that the examples use.
var exampleTypes = map[string]string{
	"gromacs.toml": `
format = 1
type = "gromacs"
version = "stand-in"
[[steps]]
command = ["cp", "{files.structure}", "{out}/protein.pdb"]
[[steps]]
command = ["cp", "{files.structure}", "{out}/final.pdb"]
[[texts]]
file = "{out}/trajectory.xtc"
text = "frames"
[[texts]]
file = "{out}/series.csv"
text = "time,value\n0,0\n10,0.1\n20,0.08\n"
[[texts]]
file = "{out}/metrics.json"
text = '{"rg_nm": 1.41}'
[[outputs]]
name = "series"
file = "series.csv"
[[parameters]]
name = "structure"
file = [".pdb"]
required = true
[[parameters]]
name = "ns"
type = "number"
required = true
` + settingsOf("equilibration_ps", "minimization", "padding", "frames", "cores") + viewsOf("rmsd", "gyration", "fluctuation"),
	"prepare-structure.toml": `
format = 1
type = "prepare-structure"
version = "stand-in"
command = ["cp", "{files.structure}", "{out}/prepared.pdb"]
[[parameters]]
name = "structure"
file = [".pdb"]
required = true
`,
	"vina.toml": `
format = 1
type = "vina"
version = "stand-in"
command = ["cp", "{files.receptor}", "{out}/receptor.pdb"]
[[texts]]
file = "{out}/metrics.json"
text = '{"affinity": -{{len .settings.smiles}}}'
[[texts]]
file = "{out}/best.sdf"
text = """
pose


  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.5000    0.0000    0.0000 N   0  0
    2.0000    1.0000    0.0000 H   0  0
  1  2  1  0
  2  3  1  0
M  END
$$$$
"""
[[parameters]]
name = "receptor"
file = [".pdb"]
required = true
[[parameters]]
name = "smiles"
type = "string"
required = true
[[parameters]]
name = "residues"
type = "string"
[metrics]
affinity = { title = "Affinity", better = "lower", rank = true }
` + settingsOf("exhaustiveness", "modes"),
}

func settingsOf(names ...string) (text string) {
	for _, name := range names {
		text += "[[parameters]]\nname = \"" + name + "\"\ntype = \"number\"\n"
	}
	return text
}

func viewsOf(names ...string) (text string) {
	for _, name := range names {
		text += "[[views]]\nname = \"" + name + "\"\nkind = \"series\"\nfile = \"series.csv\"\n"
	}
	return text
}

// The Python examples run from a structure to the final figures.
func TestPythonExamples(t *testing.T) {
	t.Parallel()
	python := must.Installed(t, "python3")
	s := startServer(t, serverOptions{algorithms: exampleTypes})
	u := s.user("lab", "ann@lab.example")
	dir := t.TempDir()
	structure, table := filepath.Join(dir, "tiny.pdb"), filepath.Join(dir, "ligands.csv")
	must.OK(t, os.WriteFile(structure, []byte("ATOM      1  CA  ALA A   1       1.000   2.000   3.000  1.00 80.00           C\nATOM      2  CB  ALA A   1       2.500   2.000   3.000  1.00 80.00           C\n"), 0o600))
	must.OK(t, os.WriteFile(table, []byte("name,smiles\nmethane,C\nethanol,CCO\nbenzene <b>,c1ccccc1\n"), 0o600))
	for _, example := range []struct {
		args  []string
		says  string
		files []string
	}{
		{[]string{"gromacs.py", structure, filepath.Join(dir, "run"), "1"}, "rg_nm            1.41", []string{"run/rmsd.svg", "run/gyration.svg", "run/fluctuation.svg", "run/trajectory.xtc", "run/final.pdb"}},
		{[]string{"screening.py", structure, table, "A:1", filepath.Join(dir, "screen")}, "  1 benzene <b>", []string{"screen/ranked.csv", "screen/ranked.svg", "screen/pose.svg", "screen/best.sdf"}},
	} {
		c := exec.CommandContext(t.Context(), python, example.args...)
		c.Dir = "../../client/examples"
		c.Env = append(os.Environ(), "BASE="+s.base, "KEY="+u.key, "PYTHONDONTWRITEBYTECODE=1")
		text, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(text), example.says) {
			t.Errorf("%s: %v, %s", example.args[0], err, text)
		}
		for _, file := range example.files {
			content, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || len(content) == 0 || strings.HasSuffix(file, ".svg") && (!strings.Contains(string(content), "</svg>") || strings.Contains(string(content), "<b>")) {
				t.Errorf("%s: %v, %.300q", file, err, content)
			}
		}
	}
}

// The Snakemake workflow produces its table. A second run computes nothing again.
func TestSnakemakeExample(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/snakemake"); err != nil {
		must.Skip(t, "Debian's snakemake is not installed")
	}
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	p := u.person()
	must.OK(t, os.CopyFS(p.dir, os.DirFS("../../client/examples/workflow")))
	run := func() string {
		if text, err := p.shell("/usr/bin/snakemake --cores 4 --config steps=20000 --nocolor"); err != nil {
			t.Fatalf("snakemake: %v\n%s", err, text)
		}
		return must.Read(t, filepath.Join(p.dir, "summary.csv"))
	}
	first := run()
	if lines := strings.Split(first, "\r\n"); len(lines) != 4 || !regexp.MustCompile(`^hst5,0\.2488,0\.2083,[01]\.\d+,0\.\d+$`).MatchString(lines[1]) {
		t.Errorf("summary.csv: %q", first)
	}
	must.OK(t, os.RemoveAll(filepath.Join(p.dir, "results")))
	must.OK(t, os.Remove(filepath.Join(p.dir, "summary.csv")))
	must.Equal(t, "summary.csv", run(), first)
	if jobs := u.names(nil); len(jobs) != 4 {
		t.Errorf("the workflow, run twice, submitted %q", jobs)
	}
}

// TestNextflowExample runs the commands of the Nextflow processes as Nextflow would
// generate them, because Debian has no Nextflow package.
func TestNextflowExample(t *testing.T) {
	t.Parallel()
	p := plain(t).user("lab", "ann@lab.example").person()
	const folder = "../../client/examples/workflow"
	must.OK(t, os.CopyFS(p.dir, os.DirFS(filepath.Join(folder, "proteins"))))
	values := strings.NewReplacer(
		"${protein.baseName}", "hst5", "${protein}", "hst5.fasta", "${params.steps}", "20000", "${rows.join(' ')}", "hst5,1.2,0.1 syn25,1.3,0.2",
		`\$`, "$", `\\`, `\`,
	)
	for _, script := range regexp.MustCompile(`(?s)"""(.*?)"""`).FindAllStringSubmatch(must.Read(t, filepath.Join(folder, "main.nf")), -1) {
		if text, err := p.shell(values.Replace(script[1])); err != nil {
			t.Errorf("%s: %v\n%s", script[1], err, text)
		}
	}
	must.Contain(t, "metrics.json", must.Read(t, filepath.Join(p.dir, "simulated/metrics.json")), "rg_nm")
	must.Equal(t, "summary.csv", must.Read(t, filepath.Join(p.dir, "summary.csv")), "protein,rg_nm,rg_se_nm\nhst5,1.2,0.1\nsyn25,1.3,0.2\n")
}
