package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// siteOfStandIns makes the folders and weights of [site.paths], in which testdata/standins.py
// stands for each program, and returns a configuration that names them.
func siteOfStandIns(t *testing.T) (config string) {
	t.Helper()
	root := t.TempDir()
	source, err := os.ReadFile("testdata/standins.py")
	must(t, err)
	paths := ""
	for _, site := range []struct {
		name, program string
		starts        []string // beginning the stand-in, below the folder
		files         []string
		weights       string
		size          int64
	}{
		{"boltz", "boltz", []string{"bin/boltz"}, nil, "", 0},
		{"boltz_cache", "", nil, nil, "boltz2_conf.ckpt", 2362232013},
		{"chai", "chai", []string{"bin/chai-lab"}, nil, "", 0},
		{"chai_downloads", "", nil, nil, "models_v2/trunk.pt", 1288490189},
		{"colabfold", "colabfold", []string{"bin/colabfold_batch"}, nil, "", 0},
		{"colabfold_data", "", nil, nil, "params/weights", 1},
		{"alphafold3", "alphafold3", nil, []string{"run_alphafold.py"}, "", 0},
		{"alphafold3_models", "", nil, nil, "af3.bin", 1 << 30},
		{"esmfold", "esmfold", []string{"bin/python"}, nil, "", 0},
		{"esmfold_code", "", nil, []string{"scripts/esmfold_inference.py"}, "", 0},
		{"esmfold_weights", "", nil, nil, "hub/checkpoints/esmfold_3B_v1.pt", 2791728742},
		{"proteinmpnn", "proteinmpnn", []string{"venv/bin/python"}, []string{"protein_mpnn_run.py"}, "vanilla_model_weights/v_48_020.pt", 6710886},
		{"rfdiffusion", "", nil, []string{"scripts/run_inference.py"}, "", 0},
		{"rfdiffusion_env", "rfdiffusion", []string{"bin/python"}, nil, "", 0},
		{"rfdiffusion_models", "", nil, nil, "Base_ckpt.pt", 483393536},
		{"bindcraft", "", nil, []string{"bindcraft.py", "settings_filters/default_filters.json", "settings_advanced/default_4stage_multimer.json"}, "params/weights", 1},
		{"bindcraft_env", "bindcraft", []string{"bin/python"}, nil, "", 0},
	} {
		dir := filepath.Join(root, site.name)
		put := func(name, text string, mode os.FileMode) {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
		}
		put("standins.py", string(source), 0o644)
		for _, name := range site.starts {
			put(name, fmt.Sprintf("#!/bin/sh\nexec /usr/bin/python3 %s/standins.py %s \"$@\"\n", dir, site.program), 0o755)
		}
		for _, name := range site.files {
			put(name, "", 0o644)
		}
		if site.weights != "" {
			put(site.weights, "", 0o644)
			must(t, os.Truncate(filepath.Join(dir, site.weights), site.size)) // without blocks
		}
		paths += fmt.Sprintf("%s = %q\n", site.name, dir)
	}
	// Two programs start the same interpreter for a script of their own or of molrun's.
	python := filepath.Join(root, "chai", "bin", "python")
	must(t, os.WriteFile(python, []byte("#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n"), 0o755))
	must(t, os.MkdirAll(filepath.Join(root, "alphafold3", "venv", "bin"), 0o755))
	python = filepath.Join(root, "alphafold3", "venv", "bin", "python")
	must(t, os.WriteFile(python, fmt.Appendf(nil, "#!/bin/sh\nshift\nexec /usr/bin/python3 %s/alphafold3/standins.py alphafold3 \"$@\"\n", root), 0o755))
	config = filepath.Join(root, "config.toml")
	must(t, os.WriteFile(config, []byte("[database]\nfile_system = \"any\"\n[runner]\ncpus = 8\nmemory = \"64GiB\"\ngpus = \"0\"\n[site.paths]\n"+paths), 0o600))
	return config
}

// TestTypesThatNeedWeightsRunWithStandIns runs the examples of the untested types: their
// command lines, inputs, tables and views are as documented, whatever the programs compute.
func TestTypesThatNeedWeightsRunWithStandIns(t *testing.T) {
	t.Parallel()
	if exec.Command("/usr/bin/python3", "-c", "import numpy").Run() != nil {
		skipUnlessRequired(t, "the system's Python has no NumPy")
	}
	types := []string{"alphafold3", "bindcraft", "boltz", "chai-1", "colabfold", "esmfold", "proteinmpnn", "rfdiffusion"}
	out, errs, code := within(t, "", append([]string{"algorithms", "test", "--config", siteOfStandIns(t)}, types...)...)
	if code != 0 || !strings.Contains(out, "8 passed, 0 failed, 0 not ready") || strings.Contains(out, "nothing in") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}
