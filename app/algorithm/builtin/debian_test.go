package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

// The parameters of a force field are fitted together with its cut-offs.
func TestGROMACSHasTheCutOffsOfItsForceField(t *testing.T) {
	a := catalogueType("gromacs", "")
	for forcefield, want := range map[string]string{
		"amber99sb-ildn": "rcoulomb = 1.0\nrvdw = 1.0\nDispCorr = EnerPres\n",
		"charmm27":       "rcoulomb = 1.2\nrvdw = 1.2\nvdwtype = cutoff\nvdw-modifier = force-switch\nrvdw-switch = 1.0\nDispCorr = no\n",
	} {
		normalized, faults := check(t, a, `{"structure":"x","forcefield":"`+forcefield+`"}`)
		if faults != nil {
			t.Fatal(faults)
		}
		run, err := a.Expand([]byte(normalized), placement.Resources{CPUs: 1}, algorithm.Paths{Work: "/w", Out: "/w/out", Program: "/molrun", Files: map[string][]string{"structure": {"/w/x.pdb"}}})
		must.OK(t, err)
		for _, name := range []string{"minimize", "nvt", "npt", "run"} {
			if text := run.Texts["/w/"+name+".mdp"]; !strings.Contains(text, want) || strings.Count(text, "rvdw =") != 1 {
				t.Errorf("%s with %s: %s", name, forcefield, text)
			}
		}
	}
}

// runAwk runs an awk script of the catalogue on the given text and returns its output and
// metrics.
func runAwk(t *testing.T, script, text string, variables ...string) (said, metrics string) {
	t.Helper()
	dir := t.TempDir()
	given, target := filepath.Join(dir, "given"), filepath.Join(dir, "metrics.json")
	must.Write(t, given, text)
	args := []string{"-v", "columns=" + os.DevNull, "-v", "metrics=" + target}
	for _, variable := range variables {
		args = append(args, "-v", variable)
	}
	out, err := exec.CommandContext(t.Context(), "awk", append(args, "-f", "catalogue/"+script, given)...).CombinedOutput() //nolint:gosec // a script of the catalogue
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out), must.Read(t, target)
}

func TestSummaryOfAlignmentsDoubtsWhatMeansNothing(t *testing.T) {
	const strand, other = "ACGTTGCAGGCATTAGCCATGCAAGTACGT", "ACGTACTTGCATGGCTAATGCCTGCAACGT"
	for name, tt := range map[string]struct{ fasta, metrics, warning string }{
		"alike":            {">a\nMKVLAAGH\n>b\nMKVLAAGW\n", `"identity": 87.5`, ""},
		"a piece of it":    {">a\nMKVLAAGH\n>b\n--VL----\n", `"identity": 100.0`, ""},
		"fragments apart":  {">a\nMKVL----\n>b\n----AAGH\n", `"gaps": 50.0000}`, "pairs share 0 % of the columns"},
		"some of them":     {">a\nMKVLAA------\n>b\n-KVLAA------\n>c\n------GHWYCC\n", `"gaps": 52.7778}`, "pairs share 31 % of the columns"},
		"unknown residues": {">a\nXXXXAAGH\n>b\nMKVLAAGH\n", `"identity": 100.0`, ""},
		"one strand":       {">a\n" + strand + "\n>b\n" + strand + "\n", `"identity": 100.0`, ""},
		"two strands":      {">a\n" + strand + "\n>b\n" + other + "\n>c\n" + strings.ReplaceAll(other, "T", "U") + "\n", `"identity"`, "the opposite strand from a: b, c."},
	} {
		t.Run(name, func(t *testing.T) {
			said, got := runAwk(t, "lib/summary.awk", tt.fasta)
			if !strings.Contains(said, tt.warning) || (tt.warning == "") != (said == "") {
				t.Errorf("said %q, want %q", said, tt.warning)
			}
			if !strings.Contains(got, tt.metrics) || strings.Contains(tt.warning, "columns") && strings.Contains(got, "identity") {
				t.Errorf("metrics %s, want %s", got, tt.metrics)
			}
		})
	}
}

// TestXTBWarnings uses xtb 6.5 output for planar ammonia, singlet O2, and minima.
func TestXTBWarnings(t *testing.T) {
	report := func(imaginary int, lowest, gap string) string {
		twice := strings.Repeat(` projected vibrational frequencies (cm⁻¹)
eigval :       -0.00    -0.00     0.00     0.00     0.00     0.00
eigval :     `+lowest+`  1461.15  1461.40  3621.21  3732.26  3732.38
`, 2)
		return fmt.Sprintf(twice+`          :  # imaginary freq.                       %d      :
          | TOTAL ENERGY               -4.424000000000 Eh   |
          | TOTAL FREE ENERGY          -4.401883036198 Eh   |
          | HOMO-LUMO GAP              %s eV   |
`, imaginary, gap)
	}
	for name, tt := range map[string]struct{ report, metrics, warning string }{
		"minimum":      {report(0, "974.80", "10.450202958860"), `{"free_energy_Eh": -4.401883036198}`, ""},
		"soft":         {report(0, "-12.30", "10.450202958860"), `{"free_energy_Eh": -4.401883036198}`, ""},
		"saddle point": {report(1, "-974.80", "10.450202958860"), `{}`, "imaginary frequencies of -974.80 cm⁻¹"},
		"no gap":       {"          | HOMO-LUMO GAP               0.000000000000 eV   |\n", `{}`, "HOMO-LUMO gap is 0"},
		"energy alone": {"          | HOMO-LUMO GAP              15.417625697982 eV   |\n", `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			said, metrics := runAwk(t, "xtb/doubts.awk", tt.report)
			if !strings.Contains(said, tt.warning) || (tt.warning == "") != (said == "") {
				t.Errorf("said %q, want %q", said, tt.warning)
			}
			must.Equal(t, "metrics", strings.TrimSpace(metrics), tt.metrics)
		})
	}
}

func TestVinaKeepsTheChainsThatAreNamed(t *testing.T) {
	two := strings.ReplaceAll(backbone("A1 A2 A3", "N", "CA", "C", "O")+backbone("B1 B2", "N", "CA", "C", "O"), "END\n", "TER\n")
	for chains, want := range map[string]struct{ atoms, refused string }{
		"A": {"AAAAAAAAAAAA.", ""}, "B": {"BBBBBBBB.", ""}, "B A": {"AAAAAAAAAAAA.BBBBBBBB.", ""}, "A C": {"", "The receptor has no protein chain C; its chains are A, B."},
	} {
		dir := t.TempDir()
		source, target := filepath.Join(dir, "a.pdb"), filepath.Join(dir, "b.pdb")
		must.Write(t, source, two)
		must.Write(t, target, "")
		said, ok := runScript(t, "lib/chains.py", source, target, chains)
		atoms := ""
		for line := range strings.Lines(must.Read(t, target)) {
			if strings.HasPrefix(line, "ATOM") {
				atoms += line[21:22]
			} else {
				atoms += "." // TER
			}
		}
		if ok != (want.refused == "") || !strings.Contains(said, want.refused) || atoms != want.atoms {
			t.Errorf("%s: %s, said %q, want %+v", chains, atoms, said, want)
		}
	}
}

// TestVinaBoxWarnings places atoms in a row along the x axis, 1 Å apart.
func TestVinaBoxWarnings(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("A%d ", 45))
	var numbers []any
	for k := range 45 {
		numbers = append(numbers, k+1)
	}
	protein := fmt.Sprintf(long, numbers...) // at x = 1 to 180 Å
	const few, peptide = "The box hardly touches the receptor: ", "Chain B of the receptor (2 residues) lies in the box."
	for name, tt := range map[string]struct {
		residues, center, size string
		warnings               []string
	}{
		"well":              {protein, "[30,0,0]", "60", nil},
		"at the end":        {protein, "[-9,0,0]", "20", []string{few + "5 of its atoms"}},
		"a peptide":         {protein + " B1 B2", "[170,0,0]", "60", []string{peptide}},
		"a peptide afar":    {protein + " B1 B2", "[100,0,0]", "60", nil},
		"a small receptor":  {"A1 A2 A3 B1 B2 B3", "[10,0,0]", "20", []string{few + "24 of its atoms"}},
		"one chain, a turn": {"A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15", "[30,0,0]", "60", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			receptor := filepath.Join(dir, "a.pdb")
			must.Write(t, receptor, backbone(tt.residues, "N", "CA", "C", "O"))
			said, ok := runScript(t, "lib/box.py", receptor, tt.size, filepath.Join(dir, "box.txt"), "center", tt.center)
			if !ok || strings.Count(said, "molrun:warning") != len(tt.warnings) {
				t.Errorf("said %q, want %q", said, tt.warnings)
			}
			for _, want := range tt.warnings {
				if !strings.Contains(said, "molrun:warning "+want) {
					t.Errorf("said %q, want %q", said, want)
				}
			}
		})
	}
}

// TestVinaFiguresAreOfOneLigand uses stand-ins for Open Babel and for Vina, with one
// affinity per ligand.
func TestVinaFiguresAreOfOneLigand(t *testing.T) {
	for affinities, want := range map[string][]string{
		"-8.0 -3.0": {`"affinity": -8.0, "efficiency": -0.4}`, ""},
		"0.5 -3.0":  {`"affinity": -3.0, "efficiency": -1.0}`, ""},
		"0.5 2.5":   {`"failed": 0}`, "No ligand binds: the best affinity is 0.5 kcal/mol"},
	} {
		dir := t.TempDir()
		write := func(name, text string) { must.Program(t, filepath.Join(dir, name), text) }
		must.OK(t, os.Mkdir(filepath.Join(dir, "out"), 0o700))
		write("obabel", "#!/bin/sh\nfor word; do :; done\necho x >\"$word\"\n")
		write("vina", "#!/bin/sh\nset -- $* ; k=${4##*/0000}; for word; do :; done\nset -- "+affinities+"\n[ ${k%.pdbqt} = 1 ] || shift\necho REMARK VINA RESULT: $1 0 0 >\"$word\"\n")
		write("ligands.csv", "number,name,smiles,heavy_atoms,reason\n1,large,C,20,\n2,small,C,3,\n")
		c := python(t, "vina/dock.py", "receptor", "box", dir, filepath.Join(dir, "out"), "1", "1", "1", "1")
		c.Env = append(c.Env, "PATH="+dir+":"+os.Getenv("PATH"))
		said, err := c.CombinedOutput()
		must.OK(t, err)
		metrics := must.Read(t, filepath.Join(dir, "out", "metrics.json"))
		if !strings.HasSuffix(metrics, want[0]) || !strings.Contains(string(said), want[1]) || strings.Contains(string(said), "warning") != (want[1] != "") {
			t.Errorf("%s: %s, said %s; want %q", affinities, metrics, said, want)
		}
	}
}

// TestDatabaseErrorsAreDistinguished feeds messages of MMseqs2 14 to the type that
// searches the site's databases.
func TestDatabaseErrorsAreDistinguished(t *testing.T) {
	for said, want := range map[string]string{
		"Outdated index version. Please recompute it with 'createindex'!\nError: Prefilter died":     "made by a different version of MMseqs2",
		"Input /databases/msa/clusters_aln does not exist":                                           "part of it is missing",
		"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc": "ran out of memory",
		"Could not write to data file /work/tmp/pref_0.1":                                            "the disk is full",
		"Error: Alignment died\nmmseqs search ended with exit status 1":                              "mmseqs search stopped early (exit status 1)",
	} {
		if got, _ := catalogueType("msa", "").Failures.Explain([]byte("search qdb\n" + said + "\n")); !strings.Contains(got, want) {
			t.Errorf("%q is told as %q, want %q", said, got, want)
		}
	}
}

func TestSearchesNameQueriesWithoutAHit(t *testing.T) {
	queries := filepath.Join(t.TempDir(), "it's a query.fasta")
	must.Write(t, queries, ">a first\nMKV\n>sp|P1|B_X\nMKV\n>c\nMKV\n")
	for name, tt := range map[string]struct{ hits, metrics, warning string }{
		"all":             {"a\t100\t20\na\t60.5\t200\nP1\t30\t50\nc\t30\t50\n", `{"without_hits": 0, "best_identity": 60.5}`, ""}, // ignores the short hit
		"MMseqs2's names": {"P1\t30\t50\na\t25\t40\n", `{"without_hits": 1, "best_identity": 30}`, "No hits were found for 1 of 3 queries: c."},
		"none":            {"", `{"without_hits": 3}`, "No hits were found for 3 of 3 queries: a, sp|P1|B_X, c."},
	} {
		t.Run(name, func(t *testing.T) {
			said, metrics := runAwk(t, "lib/hits.awk", "query\tidentity\tbits\n"+tt.hits, "queries="+queries)
			if !strings.Contains(said, tt.warning) || (tt.warning == "") != (said == "") {
				t.Errorf("said %q, want %q", said, tt.warning)
			}
			must.Equal(t, "metrics", strings.TrimSpace(metrics), tt.metrics)
		})
	}
}

func TestGapsOfChainsAreNamed(t *testing.T) {
	must.Installed(t, "python3")
	structure := filepath.Join(t.TempDir(), "a.pdb")
	for residues, want := range map[string]string{ // atoms are 1 Å apart on a line
		"A1 A2 A3 B1": "[]",
		"A1 A5":       "[]", // numbering is not evidence of a gap
	} {
		must.Write(t, structure, backbone(residues, "N", "CA", "C"))
		must.Equal(t, residues, gapsOf(t, structure), want)
	}
	apart := strings.Replace(backbone("A1 A2 A3", "N", "CA", "C"), "   7.000", "  17.000", 1)
	must.Write(t, structure, apart)
	must.Equal(t, "apart", gapsOf(t, structure), "['A:2 and 3']")
}

func gapsOf(t *testing.T, structure string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "python3", "-c", "import sys, gaps; print(gaps.gaps(sys.argv[1]))", structure)
	c.Env = append(os.Environ(), "PYTHONPATH=catalogue/lib", "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	must.OK(t, err)
	return strings.TrimSpace(string(out))
}
