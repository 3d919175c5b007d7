package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/results"
	"molrun/app/test/must"
)

// TestGPUErrorsAreDistinguished feeds error messages of PyTorch and JAX to the protein design
// and folding types.
func TestGPUErrorsAreDistinguished(t *testing.T) {
	torch := map[string]string{
		"RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver":               "driver of this server's GPU is too old",
		"RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version":                                       "driver of this server's GPU is too old",
		"RuntimeError: CUDA error: no kernel image is available for execution on the device":                                           "compute capability",
		"UserWarning:\nNVIDIA H100 with CUDA capability sm_90 is not compatible with the current PyTorch installation.":                "compute capability",
		"AssertionError: Torch not compiled with CUDA enabled":                                                                         "PyTorch supports only CPUs",
		"RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver":         "found no GPU or no GPU driver on this server",
		"RuntimeError: No CUDA GPUs are available":                                                                                     "found no GPU or no GPU driver on this server",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB":                                                  "GPU ran out of memory",
		"RuntimeError: CUDA out of memory. Tried to allocate 12.22 GiB (GPU 0; 47.46 GiB total capacity; 37.08 GiB already allocated)": "GPU ran out of memory",
	}
	jax := map[string]string{
		"WARNING:jax._src.xla_bridge: An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.\nNo GPU device found, terminating.": "JAX supports only CPUs",
		"failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\nNo GPU device found, terminating.":                                                             "found no GPU or no GPU driver on this server",
		"jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA driver version is insufficient for CUDA runtime version":                                                                   "driver of this server's GPU is too old",
		"ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'":                                                                                                            "compute capability",
		"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 57664967912 bytes.":                                                            "GPU ran out of memory",
	}
	for typ, words := range map[string]map[string]string{"bindcraft": jax, "esmfold": torch, "proteinmpnn": torch, "rfdiffusion": torch} {
		a := catalogueType(typ, "")
		for said, want := range words {
			message, lacks := a.Failures.Explain([]byte("Traceback (most recent call last):\n" + said + "\n"))
			must.Contain(t, fmt.Sprintf("%s: %q", typ, said), message, want)
			must.Equal(t, fmt.Sprintf("%s: %q is about memory", typ, said), lacks == results.LacksGPUMemory, strings.Contains(want, "memory"))
		}
	}
}

// python returns a command that runs a script of the catalogue as a step does, so that it
// can import the scripts of lib.
func python(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	must.InstalledFile(t, "/usr/bin/python3", "python3")
	c := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"catalogue/" + script}, args...)...) //nolint:gosec // a script of the catalogue
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "PYTHONPATH=catalogue/" + lib, "PYTHONDONTWRITEBYTECODE=1"}
	return c
}

// runScript runs a script of the catalogue and returns its output and whether it
// succeeded.
func runScript(t *testing.T, script string, args ...string) (said string, ok bool) {
	t.Helper()
	out, err := python(t, script, args...).CombinedOutput()
	return string(out), err == nil
}

// backbone returns a PDB file of alanines. residues lists the chain, number and optional
// insertion code of each, such as "A10 A10B".
func backbone(residues string, atoms ...string) string {
	var b strings.Builder
	serial := 0
	for _, name := range strings.Fields(residues) {
		number, code := name[1:], " "
		if last := number[len(number)-1:]; last > "9" {
			number, code = number[:len(number)-1], last
		}
		for _, atom := range atoms {
			serial++
			fmt.Fprintf(&b, "ATOM  %5d  %-3s ALA %s%4s%s   %8.3f   0.000   0.000  1.00 50.00           %s\n", serial, atom, name[:1], number, code, float64(serial), atom[:1])
		}
	}
	return b.String() + "END\n"
}

func TestProteinMPNNDesignsTheResiduesThatAreNamed(t *testing.T) {
	whole := []string{"N", "CA", "C", "O"}
	two := backbone("A1 A2 A4 A4A A5 B1 B2 B4 B4A B5", whole...)
	for name, tt := range map[string]struct {
		pdb, settings, candidates string
		refused                   string // "" if accepted
		files                     map[string]string
	}{
		"all":                 {pdb: two, settings: `"chains":"A"`, files: map[string]string{"fixed.jsonl": "", "tied.jsonl": "", "bias.jsonl": ""}},
		"kept":                {pdb: two, settings: `"fixed":"A2-4,B4A"`, files: map[string]string{"fixed.jsonl": `{"backbone": {"A": [2, 4], "B": [5]}}`}},
		"redesigned":          {pdb: two, settings: `"chains":"B","redesign":"B4-5"`, files: map[string]string{"fixed.jsonl": `{"backbone": {"A": [], "B": [1, 2]}}`}},
		"not in that chain":   {pdb: two, settings: `"chains":"B","redesign":"A4"`, refused: "A4 is to be designed, but its chain is not among the chains to design."},
		"none is left":        {pdb: two, settings: `"chains":"A","fixed":"A1-5"`, refused: "No residue is left to design"},
		"backwards":           {pdb: two, settings: `"fixed":"A5-1"`, refused: "The range A5-1 runs backward."},
		"no residue":          {pdb: two, settings: `"fixed":"A1-9"`, refused: "A1-9 names residue A9, which the structure does not have."},
		"no chain":            {pdb: two, settings: `"fixed":"C1"`, refused: "C1 names chain C, which the structure does not have: its chains are A, B."},
		"twice":               {pdb: two, settings: `"chains":"A A"`, refused: "Chain A is named twice."},
		"tied":                {pdb: two, settings: `"tied":true,"fixed":"B5"`, files: map[string]string{"tied.jsonl": `{"backbone": [{"A": [1], "B": [1]}, `, "fixed.jsonl": `{"backbone": {"A": [6], "B": [6]}}`}},
		"tied alone":          {pdb: two, settings: `"tied":true,"chains":"A"`, refused: "Identical chains need at least two chains"},
		"tied and not equal":  {pdb: backbone("A1 A2 A3 B1 B2 B4", whole...), settings: `"tied":true`, refused: "Chains A and B do not have the same residue numbers"},
		"tied and not whole":  {pdb: backbone("A1 A2", whole...) + backbone("B1", whole...) + backbone("B2", "N", "CA"), settings: `"tied":true`, refused: "Identical chains need complete backbones, which these residues lack: B2."},
		"bias":                {pdb: two, settings: `"bias":"A=-1.1 F=0.7"`, files: map[string]string{"bias.jsonl": `{"A": -1.1, "F": 0.7}`}},
		"alpha carbons":       {pdb: backbone("A1 A2 A3", "CA"), settings: `"chains":"A"`, refused: "only alpha carbons: choose the model ca."},
		"the model for those": {pdb: backbone("A1 A2 A3", "CA"), settings: `"model":"ca"`},
		"scored with a gap":   {pdb: two, settings: `"chains":"A"`, candidates: ">x\nmkvla\n>y\nMKXVLA\n", files: map[string]string{"candidates.fasta": ">x\nMKXVLA\n>y\nMKXVLA\n"}},
		"scored, too short":   {pdb: two, settings: `"chains":"A"`, candidates: ">x\nMKV\n", refused: "Sequence x has 3 residues, but the chains A have 5."},
		"scored, unknown":     {pdb: two, settings: `"chains":"A"`, candidates: ">x\nMKVLB\n", refused: "Sequence x contains B, which ProteinMPNN does not know."},
		"a chain of no name":  {pdb: strings.ReplaceAll(two, "ALA B", "ALA  "), settings: `"chains":"A"`, refused: "A chain of the structure has no letter"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				must.Write(t, filepath.Join(dir, name), text)
				return filepath.Join(dir, name)
			}
			if !strings.Contains(tt.settings, `"model"`) {
				tt.settings += `,"model":"vanilla"`
			}
			args := []string{write("settings.json", "{"+tt.settings+"}"), write("backbone.pdb", tt.pdb), dir}
			if tt.candidates != "" {
				args = append(args, write("given.fasta", tt.candidates))
			}
			said, ok := runScript(t, "proteinmpnn/inputs.py", args...)
			if ok != (tt.refused == "") || !strings.Contains(said, tt.refused) {
				t.Errorf("said %q, want %q", said, tt.refused)
			}
			for file, want := range tt.files {
				text, _ := os.ReadFile(filepath.Join(dir, file))
				if !strings.HasPrefix(string(text), want) || (want == "") != (len(text) == 0) {
					t.Errorf("%s: %q, want %q", file, text, want)
				}
			}
		})
	}
}

func TestLigandMPNNDesignsTheResiduesThatAreNamed(t *testing.T) {
	two := backbone("A1 A2 A4A A5 B1 B2 B4A B5", "N", "CA", "C", "O")
	ligand := "HETATM  900  C1  LIG C   1       0.000   3.000   0.000  1.00  0.00           C\n"
	glutamate := "HETATM  901  CA  GLU A 200       0.000   3.000   0.000  1.00  0.00           C\n"
	for name, tt := range map[string]struct {
		pdb, settings string
		refused       string // "" if accepted
		said          string
		options       string
		holds         string // contained in the structure that LigandMPNN reads
		lacks         string
	}{
		"all":                {pdb: ligand + two, options: `["--redesigned_residues", "A1 A2 A4A A5 B1 B2 B4A B5"]`, holds: "LIG C"},
		"a chain":            {pdb: ligand + two, settings: `,"chains":"B"`, options: `["--redesigned_residues", "B1 B2 B4A B5"]`},
		"kept":               {pdb: ligand + two, settings: `,"fixed":"A2-5,B1"`, options: `["--redesigned_residues", "A1 B2 B4A B5"]`},
		"redesigned":         {pdb: ligand + two, settings: `,"redesign":"A2-4A"`, options: `["--redesigned_residues", "A2 A4A"]`},
		"tied":               {pdb: ligand + two, settings: `,"tied":true,"fixed":"A2-5,B2-5"`, options: `"--symmetry_residues", "A1,B1", "--symmetry_weights", "0.500000,0.500000"]`},
		"tied and not equal": {pdb: ligand + two, settings: `,"tied":true,"fixed":"A1"`, refused: "Chains A and B can't get the same sequence: only one of them has residue 1 to design."},
		"tied alone":         {pdb: ligand + two, settings: `,"tied":true,"chains":"A"`, refused: "Identical chains need at least two chains to design."},
		"bias":               {pdb: ligand + two, settings: `,"bias":"A=-1.1 F=0.7"`, options: `"--bias_AA", "A:-1.1,F:0.7"]`},
		"not in that chain":  {pdb: ligand + two, settings: `,"chains":"B","redesign":"A1"`, refused: "A1 can't be designed: its chain is not among the chains to design."},
		"no residue":         {pdb: ligand + two, settings: `,"redesign":"A3"`, refused: "A3 names residue A3, which the structure does not have."},
		"none is left":       {pdb: ligand + two, settings: `,"fixed":"A1-5,B1-5"`, refused: "No residue is left to design."},
		"no chain":           {pdb: ligand + two, settings: `,"chains":"Z"`, refused: "The structure has no chain Z: its chains are A, B."},
		"of another kind":    {pdb: ligand + strings.ReplaceAll(two, "ALA B   2", "SEP B   2"), settings: `,"redesign":"B2"`, refused: "B2 can't be designed: it is SEP, which is not one of the 20 amino acids."},
		"not whole":          {pdb: ligand + two + backbone("A7", "N", "CA"), options: "B5\"]", said: "These residues lack backbone atoms and are left out: A7.", lacks: "ALA A   7"},
		"not whole, named":   {pdb: ligand + two + backbone("A7", "N", "CA"), settings: `,"redesign":"A5-7"`, refused: "A7 can't be designed: it lacks backbone atoms."},
		"no backbone":        {pdb: backbone("A7", "N", "CA"), refused: "No residue of the structure has a complete backbone"},
		"free amino acid":    {pdb: two + glutamate, options: "B5\"]", holds: "UNL A 200", lacks: "GLU"}, // would otherwise become part of the sequence
		"no ligand":          {pdb: two, said: "Warning: the structure has no ligand"},
		"a chain of no name": {pdb: strings.ReplaceAll(two, "ALA B", "ALA  "), refused: "A chain of the structure has no letter"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Write(t, filepath.Join(dir, "settings.json"), `{"model":"ligand"`+tt.settings+`}`)
			must.Write(t, filepath.Join(dir, "read.pdb"), tt.pdb)
			said, ok := runScript(t, "ligandmpnn/inputs.py", filepath.Join(dir, "settings.json"), filepath.Join(dir, "read.pdb"), dir)
			if ok != (tt.refused == "") || !strings.Contains(said, tt.refused+tt.said) {
				t.Errorf("said %q, want %q", said, tt.refused+tt.said)
			}
			options, _ := os.ReadFile(filepath.Join(dir, "options.json"))
			given, _ := os.ReadFile(filepath.Join(dir, "structure.pdb"))
			if !strings.HasSuffix(string(options), tt.options) && !strings.HasPrefix(string(options), tt.options) || !strings.Contains(string(given), tt.holds) || tt.lacks != "" && strings.Contains(string(given), tt.lacks) {
				t.Errorf("%s\n%s", options, given)
			}
		})
	}
}

// TestDesignSettingsThatDoNotGoTogether submits settings that the programs would
// misinterpret.
func TestDesignSettingsThatDoNotGoTogether(t *testing.T) {
	read := map[string]*algorithm.File{}
	for _, tt := range []struct{ typ, settings, refused string }{
		{"proteinmpnn", `{"structure":"x","model":"ca","model_noise":0.3}`, "model_noise: must be 0.02, 0.1 or 0.2 with the model ca"},
		{"proteinmpnn", `{"structure":"x","fixed":"A1","redesign":"A2"}`, "redesign: can't be combined with fixed"},
		{"proteinmpnn", `{"structure":"x","candidates":"y"}`, ""}, // checked only once files are known
		{"proteinmpnn", `{"structure":"x","chains":"A B A"}`, "chains: names a chain twice"},
		{"proteinmpnn", `{"structure":"x","chains":"A B","fixed":"A-3--1,B52A-60","bias":"A=-1.1 W=2"}`, ""},
		{"proteinmpnn", `{"structure":"x","bias":"A=low"}`, "bias: "},
		{"ligandmpnn", `{"structure":"x","model_noise":0.02}`, "model_noise: must be 0.05, 0.1, 0.2 or 0.3 with the model ligand"},
		{"ligandmpnn", `{"structure":"x","model_noise":0.05,"model":"soluble"}`, "model_noise: must be 0.02, 0.1, 0.2 or 0.3 with the models protein and soluble"},
		{"ligandmpnn", `{"structure":"x","model_noise":0.1,"model":"membrane"}`, "model_noise: must be 0.2 with the model membrane"},
		{"ligandmpnn", `{"structure":"x","keep_context":true,"model":"protein"}`, "keep_context: is only for the model ligand, which is not selected"},
		{"ligandmpnn", `{"structure":"x","fixed":"A1","redesign":"A2"}`, "redesign: can't be combined with fixed"},
		{"ligandmpnn", `{"structure":"x","model":"membrane","chains":"A B","side_chains":true}`, ""},
		{"immunebuilder", `{}`, "heavy: is missing: give heavy and light for an antibody"},
		{"immunebuilder", `{"light":"` + strings.Repeat("A", 80) + `"}`, "light: needs the heavy chain too"},
		{"immunebuilder", `{"alpha":"` + strings.Repeat("A", 80) + `"}`, "alpha: and beta are the two chains"},
		{"immunebuilder", `{"heavy":"` + strings.Repeat("A", 80) + `","alpha":"` + strings.Repeat("A", 80) + `","beta":"` + strings.Repeat("A", 80) + `"}`, "alpha: can't be given together with heavy"},
		{"immunebuilder", `{"heavy":"` + strings.Repeat("A", 60) + `"}`, "heavy: "},
		{"bindcraft", `{"target":"x","shortest":80,"longest":70}`, "shortest: must not exceed longest"},
		{"bindcraft", `{"target":"x","chains":"A,B,A"}`, "chains: names a chain twice"},
		{"bindcraft", `{"target":"x","protocol":"peptide","hard_target":true}`, "hard_target: can't be used with the peptide protocol"},
		{"bindcraft", `{"target":"x","hotspots":"A,B5-9,7","flexible":true,"hard_target":true}`, ""},
		{"rfdiffusion", `{"contigs":"100"}`, ""}, // means 100-100
		{"rfdiffusion", `{"contigs":"10-20/A35/10-20","structure":"x"}`, ""},
		{"rfdiffusion", `{"contigs":"0-30/A35-40/5","structure":"x"}`, ""},
		{"rfdiffusion", `{"contigs":"12-18 A3-117/0","structure":"x","hotspots":["A3","A117"],"cyclic":true,"seed":0}`, ""},
		{"rfdiffusion", `{"contigs":"A1-150/0 70-100","structure":"x","hotspots":["A59"],"noise":0,"weights":"beta_binders"}`, ""},
		{"rfdiffusion", `{"contigs":"480","symmetry":"C6","potential":"contacts"}`, ""},
		{"rfdiffusion", `{"contigs":"79-79","structure":"x","partial":20}`, ""},
		{"rfdiffusion", `{"contigs":"150-100"}`, "contigs: has a range whose end is before its start"},
		{"rfdiffusion", `{"contigs":"A50-30/10","structure":"x"}`, "contigs: has a range whose end is before its start"},
		{"rfdiffusion", `{"contigs":"A1-50","structure":"x"}`, "contigs: builds nothing"},
		{"rfdiffusion", `{"contigs":"A1-50/0 0-0","structure":"x"}`, "contigs: builds nothing"},
		{"rfdiffusion", `{"contigs":"A1-100/0/70-100","structure":"x"}`, "contigs: has 0 within a chain"},
		{"rfdiffusion", `{"contigs":"A1-40/20-30"}`, "contigs: names residues of a structure: give the structure too"},
		{"rfdiffusion", `{"contigs":"A1-40/20-30","structure":"x","hotspots":["A3"]}`, "hotspots: need contigs with a target and a new chain"},
		{"rfdiffusion", `{"contigs":"A30-80/0 60","structure":"x","hotspots":["A40","A120"]}`, "hotspots: names a residue that is not in the contigs"},
		{"rfdiffusion", `{"contigs":"A30-80/0 60","structure":"x","hotspots":["B40"]}`, "hotspots: names a residue that is not in the contigs"},
		{"rfdiffusion", `{"contigs":"79","structure":"x","partial":60}`, "partial: must not exceed steps"},
		{"rfdiffusion", `{"contigs":"79","partial":20}`, "partial: needs a structure"},
		{"rfdiffusion", `{"contigs":"100-200","symmetry":"C2"}`, "symmetry: needs contigs of one total length"},
		{"rfdiffusion", `{"contigs":"100","symmetry":"tetrahedral"}`, "symmetry: needs contigs of one total length"},
		{"rfdiffusion", `{"contigs":"100","symmetry":"D2","cyclic":true}`, "symmetry: can't be combined with a macrocycle"},
		{"rfdiffusion", `{"contigs":"240","symmetry":"octahedral","potential":"contacts"}`, "potential: contacts is for oligomers"},
		{"rfdiffusion", `{"contigs":"100","potential":"contacts"}`, "potential: contacts is for oligomers"},
		{"rfdiffusion", `{"contigs":"10/A35/10","structure":"x","hide_sequence":"A35","weights":"active_site"}`, "weights: must be usual if residues are masked"},
	} {
		if read[tt.typ] == nil {
			read[tt.typ] = catalogueType(tt.typ, "")
		}
		_, faults := read[tt.typ].CheckSettings(parsed(t, tt.settings))
		var said []string
		for _, f := range faults {
			said = append(said, fmt.Sprint(f.Loc[0], ": ", f.Msg))
		}
		if got := strings.Join(said, "; "); !strings.HasPrefix(got, tt.refused) || (got == "") != (tt.refused == "") {
			t.Errorf("%s %s: %q, want %q", tt.typ, tt.settings, got, tt.refused)
		}
	}
}

func TestRFdiffusionGetsResiduesThatAreThere(t *testing.T) {
	whole := []string{"N", "CA", "C", "O"}
	pdb := backbone("A1 A2 A3 A4 B1 B2", whole...)
	for name, tt := range map[string]struct {
		pdb, settings, contigs string
		refused                string // "" if accepted
	}{
		"motif":             {pdb, `"hide_sequence":"A2/A3-4"`, "10-20/A1-4/5-5", ""},
		"none":              {pdb, ``, "A1-9/0 5-5", "The contigs name residue A5, which the structure does not have."},
		"two chains":        {pdb, ``, "A1-4/B1-2/0 5-5", "A1-4/B1-2 has residues of two chains: end each chain with /0 and a space."},
		"another order":     {pdb, ``, "A3-4/A1-2/0 5-5", "A3-4/A1-2 names residues out of chain order."},
		"motif, any order":  {pdb, ``, "A3-4/5-5/A1-2", ""},
		"hotspot":           {pdb, `"hotspots":["B2"]`, "A1-4/0 5-5", "The hotspot, B2, is not in the contigs."},
		"type hidden":       {pdb, `"hide_sequence":"A3-4"`, "5-5/A1-3", "The residue with a masked type, A4, is not in the contigs."},
		"place hidden":      {pdb, `"hide_structure":"B1-2"`, "B1-1/0 5-5", "The residue with a masked position, B2, is not in the contigs."},
		"insertion code":    {backbone("A1 A1A A2", whole...), ``, "A1-2/5-5", "The structure has residues A1 with insertion codes"},
		"elsewhere":         {backbone("A1 A1A A2", whole...), ``, "A2-2/5-5", ""},
		"cut":               {backbone("A1", whole...) + backbone("A2", "CA"), ``, "A1-2/5-5", "Residue A2 lacks backbone atoms"},
		"varied":            {pdb, `"partial":10`, "4-4/0 B1-2/0", ""},
		"varied, as a part": {pdb, `"partial":10`, "A1-2/4-4", ""},
		"varied, longer":    {pdb, `"partial":10`, "5-5/0 B1-2/0", "the contigs must have as many residues as the structure: they have 7, the structure 6."},
		"varied, of ranges": {pdb, `"partial":10`, "4-5/0 B1-2/0", "4-5 in the contigs must be a single length"},
		"varied, moved":     {pdb, `"partial":10`, "A1-4/0 2-2", "residues keep their positions: residue 3 is A1 in the contigs, but A3 in the structure."},
	} {
		dir := t.TempDir()
		settings, structure := filepath.Join(dir, "settings.json"), filepath.Join(dir, "target.pdb")
		must.Write(t, settings, "{"+tt.settings+"}")
		must.Write(t, structure, tt.pdb)
		if said, ok := runScript(t, "rfdiffusion/contigs.py", settings, tt.contigs, structure); ok != (tt.refused == "") || !strings.Contains(said, tt.refused) {
			t.Errorf("%s: said %q, want %q", name, said, tt.refused)
		}
	}
}

func TestBindCraftGetsATargetThatIsThere(t *testing.T) {
	whole := []string{"N", "CA", "C", "O"}
	pdb := backbone("A1 A2 A4 B1", whole...)
	for name, tt := range map[string]struct {
		pdb, chains, hotspots string
		refused               string // "" if accepted
	}{
		"all":            {pdb, "A", "", ""},
		"hotspots":       {pdb, "B,A", "1,A1-2,A4,B", ""},
		"no chain":       {pdb, "A,C", "", "The target has no chain C: its chains are A, B."},
		"other chain":    {pdb, "A", "B1", "Hotspot B1 is not in the chains of the target, A."},
		"chain not used": {pdb, "A", "B", "Hotspot B is not in the chains of the target, A."},
		"gap":            {pdb, "A", "A1-4", "The hotspots name A3, but the target has no such residue with a backbone."},
		"of first chain": {pdb, "B,A", "2", "The hotspots name B2, but the target has no such residue with a backbone"},
		"backwards":      {pdb, "A", "A4-1", "Hotspot A4-1 runs backward."},
		"cut":            {backbone("A1", whole...) + backbone("A2", "CA"), "A", "A2", "The hotspots name A2, but the target has no such residue with a backbone"},
		"insertion code": {backbone("A1 A1A B1", whole...), "A", "", "Chain A has residues with insertion codes, such as A1A"},
		"elsewhere":      {backbone("A1 A1A B1", whole...), "B", "", ""},
	} {
		structure := filepath.Join(t.TempDir(), "target.pdb")
		must.Write(t, structure, tt.pdb)
		if said, ok := runScript(t, "bindcraft/target.py", structure, tt.chains, tt.hotspots); ok != (tt.refused == "") || !strings.Contains(said, tt.refused) {
			t.Errorf("%s: said %q, want %q", name, said, tt.refused)
		}
	}
}
