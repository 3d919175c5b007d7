package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestGPUFaultsAreToldApart gives the words of PyTorch and JAX to the types that design proteins or fold those.
func TestGPUFaultsAreToldApart(t *testing.T) {
	torch := map[string]string{
		"RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver":               "driver of this server's GPU is too old",
		"RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version":                                       "driver of this server's GPU is too old",
		"RuntimeError: CUDA error: no kernel image is available for execution on the device":                                           "compute capability",
		"UserWarning:\nNVIDIA H100 with CUDA capability sm_90 is not compatible with the current PyTorch installation.":                "compute capability",
		"AssertionError: Torch not compiled with CUDA enabled":                                                                         "PyTorch is one for CPUs",
		"RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver":         "found no GPU on this server",
		"RuntimeError: No CUDA GPUs are available":                                                                                     "found no GPU on this server",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB":                                                  "GPU's memory does not suffice",
		"RuntimeError: CUDA out of memory. Tried to allocate 12.22 GiB (GPU 0; 47.46 GiB total capacity; 37.08 GiB already allocated)": "GPU's memory does not suffice",
	}
	for typ, words := range map[string]map[string]string{"esmfold": torch, "proteinmpnn": torch} {
		a := catalogueType(typ, "")
		for said, want := range words {
			if got := a.Failures.Explain([]byte("Traceback (most recent call last):\n" + said + "\n")); !strings.Contains(got, want) {
				t.Errorf("%s: %q is told as %q, want %q", typ, said, got, want)
			}
		}
	}
}

// runScript runs a script of the catalogue and returns what it said, and whether it ended well.
func runScript(t *testing.T, script string, args ...string) (said string, ok bool) {
	t.Helper()
	must.Installed(t, "python3")
	out, err := exec.CommandContext(t.Context(), "python3", append([]string{"catalogue/" + script}, args...)...).CombinedOutput() //nolint:gosec // a script of the catalogue
	return string(out), err == nil
}

// backbone returns a PDB file of alanines, whose chain, number and insertion code are such as "A10" or "A10B".
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
		refused                   string // "": it is not
		files                     map[string]string
	}{
		"all":                 {pdb: two, settings: `"chains":"A"`, files: map[string]string{"fixed.jsonl": "", "tied.jsonl": "", "bias.jsonl": ""}},
		"kept":                {pdb: two, settings: `"fixed":"A2-4,B4A"`, files: map[string]string{"fixed.jsonl": `{"backbone": {"A": [2, 4], "B": [5]}}`}},
		"redesigned":          {pdb: two, settings: `"chains":"B","redesign":"B4-5"`, files: map[string]string{"fixed.jsonl": `{"backbone": {"A": [], "B": [1, 2]}}`}},
		"not in that chain":   {pdb: two, settings: `"chains":"B","redesign":"A4"`, refused: "A4 is to be designed, but its chain is not among the chains to design."},
		"none is left":        {pdb: two, settings: `"chains":"A","fixed":"A1-5"`, refused: "No residue is left to design"},
		"backwards":           {pdb: two, settings: `"fixed":"A5-1"`, refused: "A5-1 runs backwards."},
		"no residue":          {pdb: two, settings: `"fixed":"A1-9"`, refused: "The structure has no residue A9, which A1-9 names."},
		"no chain":            {pdb: two, settings: `"fixed":"C1"`, refused: "The structure has no chain C, which C1 names: its chains are A, B."},
		"twice":               {pdb: two, settings: `"chains":"A A"`, refused: "The chain A is named twice."},
		"tied":                {pdb: two, settings: `"tied":true,"fixed":"B5"`, files: map[string]string{"tied.jsonl": `{"backbone": [{"A": [1], "B": [1]}, `, "fixed.jsonl": `{"backbone": {"A": [6], "B": [6]}}`}},
		"tied alone":          {pdb: two, settings: `"tied":true,"chains":"A"`, refused: "Equal chains need two chains"},
		"tied and not equal":  {pdb: backbone("A1 A2 A3 B1 B2 B4", whole...), settings: `"tied":true`, refused: "The chains A and B do not have the same residue numbers"},
		"tied and not whole":  {pdb: backbone("A1 A2", whole...) + backbone("B1", whole...) + backbone("B2", "N", "CA"), settings: `"tied":true`, refused: "Equal chains need whole backbones, which these residues lack: B2."},
		"bias":                {pdb: two, settings: `"bias":"A=-1.1 F=0.7"`, files: map[string]string{"bias.jsonl": `{"A": -1.1, "F": 0.7}`}},
		"alpha carbons":       {pdb: backbone("A1 A2 A3", "CA"), settings: `"chains":"A"`, refused: "alpha carbons alone: choose the model ca."},
		"the model for those": {pdb: backbone("A1 A2 A3", "CA"), settings: `"model":"ca"`},
		"scored with a gap":   {pdb: two, settings: `"chains":"A"`, candidates: ">x\nmkvla\n>y\nMKXVLA\n", files: map[string]string{"candidates.fasta": ">x\nMKXVLA\n>y\nMKXVLA\n"}},
		"scored, too short":   {pdb: two, settings: `"chains":"A"`, candidates: ">x\nMKV\n", refused: "The sequence x has 3 residues, and the chains A have 5."},
		"scored, unknown":     {pdb: two, settings: `"chains":"A"`, candidates: ">x\nMKVLB\n", refused: "The sequence x has B, which ProteinMPNN does not know."},
		"a chain of no name":  {pdb: strings.ReplaceAll(two, "ALA B", "ALA  "), settings: `"chains":"A"`, refused: "A chain of the structure has no letter"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
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

// TestDesignSettingsThatDoNotGoTogether submits settings that the programs would take for others.
func TestDesignSettingsThatDoNotGoTogether(t *testing.T) {
	for _, tt := range []struct{ typ, settings, refused string }{
		{"proteinmpnn", `{"structure":"x","model":"ca","model_noise":0.3}`, "model_noise: is 0.02, 0.1 or 0.2 with the model ca"},
		{"proteinmpnn", `{"structure":"x","fixed":"A1","redesign":"A2"}`, "redesign: can't be given together with fixed"},
		{"proteinmpnn", `{"structure":"x","candidates":"y"}`, ""}, // where files are known
		{"proteinmpnn", `{"structure":"x","chains":"A B A"}`, "chains: names a chain twice"},
		{"proteinmpnn", `{"structure":"x","chains":"A B","fixed":"A-3--1,B52A-60","bias":"A=-1.1 W=2"}`, ""},
		{"proteinmpnn", `{"structure":"x","bias":"A=low"}`, "bias: "},
	} {
		_, faults := catalogueType(tt.typ, "").CheckSettings(parsed(t, tt.settings))
		var said []string
		for _, f := range faults {
			said = append(said, fmt.Sprint(f.Loc[0], ": ", f.Msg))
		}
		if got := strings.Join(said, "; "); !strings.HasPrefix(got, tt.refused) || (got == "") != (tt.refused == "") {
			t.Errorf("%s %s: %q, want %q", tt.typ, tt.settings, got, tt.refused)
		}
	}
}
