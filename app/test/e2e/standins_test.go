package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// siteOfStandIns makes the folders and weights of [site.paths], in which testdata/standins.py
// stands for each program, and returns a configuration that names them.
func siteOfStandIns(t *testing.T) (config string) {
	t.Helper()
	root := t.TempDir()
	source := must.Read(t, "testdata/standins.py")
	paths := ""
	for _, site := range []struct {
		name, program string
		starts        []string // beginning the stand-in, below the folder
		files         []string
		weights       map[string]int64
	}{
		{"boltz", "boltz", []string{"bin/boltz"}, nil, nil},
		{"boltz_cache", "", nil, []string{"mols/ATP.pkl"}, map[string]int64{"mols.tar": 1_860_000_000, "boltz2_conf.ckpt": 2_290_000_000, "boltz2_aff.ckpt": 2_060_000_000}},
		{"chai", "chai", []string{"bin/chai-lab"}, nil, nil},
		{"chai_downloads", "", nil, []string{
			"conformers_v1.apkl", "esm/traced_sdpa_esm2_t36_3B_UR50D_fp16.pt", "models_v2/feature_embedding.pt", "models_v2/bond_loss_input_proj.pt",
			"models_v2/token_embedder.pt", "models_v2/trunk.pt", "models_v2/diffusion_module.pt", "models_v2/confidence_head.pt",
		}, nil},
		{"colabfold", "colabfold", []string{"bin/colabfold_batch"}, nil, nil},
		{"colabfold_data", "", nil, []string{"params/download_finished.txt", "params/download_complexes_multimer_v3_finished.txt"}, nil},
		{"alphafold3", "alphafold3", nil, []string{"run_alphafold.py"}, nil},
		{"alphafold3_models", "", nil, []string{"af3.bin.zst"}, nil},
		{"esmfold", "esmfold", []string{"bin/esm-fold"}, nil, nil},
		{"esmfold_weights", "", nil, nil, map[string]int64{"hub/checkpoints/esmfold_3B_v1.pt": 2791728742}},
		{"proteinmpnn", "proteinmpnn", []string{"venv/bin/python"}, []string{"protein_mpnn_run.py"}, map[string]int64{"vanilla_model_weights/v_48_020.pt": 6710886}},
		{"rfdiffusion", "", nil, []string{"scripts/run_inference.py"}, nil},
		{"rfdiffusion_env", "rfdiffusion", []string{"bin/python"}, nil, nil},
		{"rfdiffusion_models", "", nil, nil, map[string]int64{"Base_ckpt.pt": 483393536}},
		{"bindcraft", "", nil, []string{"settings_filters/default_filters.json", "settings_advanced/default_4stage_multimer.json"}, map[string]int64{"params/weights": 1}},
		{"bindcraft_env", "", nil, nil, nil},
	} {
		dir := filepath.Join(root, site.name)
		put := func(name, text string, mode os.FileMode) {
			must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
		}
		put("standins.py", source, 0o644)
		for _, name := range site.starts {
			put(name, fmt.Sprintf("#!/bin/sh\nexec /usr/bin/python3 %s/standins.py %s \"$@\"\n", dir, site.program), 0o755)
		}
		for _, name := range site.files {
			put(name, "", 0o644)
		}
		for name, size := range site.weights {
			put(name, "", 0o644)
			must.OK(t, os.Truncate(filepath.Join(dir, name), size)) // without blocks
		}
		paths += fmt.Sprintf("%s = %q\n", site.name, dir)
	}
	// Some programs start the same interpreter for a script of their own or of molrun's, and say by its
	// packages of which version they are.
	for name, packages := range map[string][]string{
		"boltz": {"boltz-2.2.0"}, "chai": {"chai_lab-0.6.1"}, "colabfold": {"colabfold-1.6.2", "openmm-8.2.0", "jax_cuda12_plugin-0.10.2"}, "alphafold3/venv": {"alphafold3-3.0.4", "jax_cuda12_plugin-0.10.2"}, "bindcraft_env": nil,
	} {
		put := func(name, text string) {
			must.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must.OK(t, os.WriteFile(name, []byte(text), 0o755)) //nolint:gosec // a program
		}
		dir := filepath.Join(root, name)
		put(filepath.Join(dir, "bin", "python"), fmt.Sprintf("#!/bin/sh\nPYTHONPATH=%s/packages exec /usr/bin/python3 \"$@\"\n", dir))
		put(filepath.Join(dir, "packages", "torch.py"), "class version:\n    cuda = '12.8'\n")
		for _, name := range append(packages, "jax-0.10.2") {
			name, version, _ := strings.Cut(name, "-")
			put(filepath.Join(dir, "packages", name, "__init__.py"), "")
			put(filepath.Join(dir, "packages", name+"-"+version+".dist-info", "METADATA"), "Metadata-Version: 2.1\nName: "+name+"\nVersion: "+version+"\n")
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(root, "bindcraft", "bindcraft.py"), []byte("import sys\nsys.argv.insert(1, 'bindcraft')\nimport standins\n"), 0o644))
	must.OK(t, os.MkdirAll(filepath.Join(root, "alphafold3", "venv", "bin"), 0o755))
	python := filepath.Join(root, "alphafold3", "venv", "bin", "python")
	must.OK(t, os.WriteFile(python, fmt.Appendf(nil, "#!/bin/sh\nif test \"$1\" = -c; then PYTHONPATH=%[1]s/alphafold3/venv/packages exec /usr/bin/python3 \"$@\"; fi\n"+
		"shift\nexec /usr/bin/python3 %[1]s/alphafold3/standins.py alphafold3 \"$@\"\n", root), 0o755))
	config = filepath.Join(root, "config.toml")
	must.OK(t, os.WriteFile(config, []byte("[database]\nfile_system = \"any\"\n[runner]\ncpus = 8\nmemory = \"64GiB\"\ngpus = \"0\"\n[site.paths]\n"+paths), 0o600))
	return config
}

// TestTypesThatNeedWeightsRunWithStandIns runs the examples of the untested types: their
// command lines, inputs, tables and views are as documented, whatever the programs compute.
func TestTypesThatNeedWeightsRunWithStandIns(t *testing.T) {
	t.Parallel()
	if exec.Command("/usr/bin/python3", "-c", "import numpy").Run() != nil {
		must.Skip(t, "the system's Python has no NumPy")
	}
	types := []string{"alphafold3", "bindcraft", "boltz", "chai-1", "colabfold", "esmfold", "proteinmpnn", "rfdiffusion"}
	out, errs, code := outside(t, append([]string{"algorithms", "test", "--config", siteOfStandIns(t)}, types...)...)
	if code != 0 || !strings.Contains(out, "8 passed, 0 failed, 0 not ready") || strings.Contains(out, "nothing in") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}

// TestProgramsThatFailInWordsAlone runs programs that end with exit status 0 and a result
// that is not what was asked for, and BindCraft where it stops early.
func TestProgramsThatFailInWordsAlone(t *testing.T) {
	t.Parallel()
	if exec.Command("/usr/bin/python3", "-c", "import numpy").Run() != nil {
		must.Skip(t, "the system's Python has no NumPy")
	}
	config := siteOfStandIns(t)
	s := startServer(t, serverOptions{config: must.Read(t, config)})
	if !s.sandboxed() {
		must.Skip(t, "no sandbox here")
	}
	u := s.user("lab", "ann@lab.example")
	files := map[string]string{
		"TARGET": u.upload("target.pdb", must.Read(t, "../../algorithm/builtin/catalogue/bindcraft/example/lysozyme.pdb")),
	}
	for name, tt := range map[string]struct {
		typ, settings string
		fails         string         // words of the message
		metrics       map[string]any // of the result
	}{
		"hotspots":       {typ: "rfdiffusion", settings: `{"structure":"TARGET","contigs":"A30-60/0 50-50","hotspots":["A40"],"designs":1}`, metrics: map[string]any{"designs": 1.0}},
		"all":            {typ: "bindcraft", settings: `{"target":"TARGET","designs":3}`, metrics: map[string]any{"designs": 3.0, "ended": "as many as asked for"}},
		"gives-up":       {typ: "bindcraft", settings: `{"target":"TARGET","designs":3,"shortest":22}`, metrics: map[string]any{"designs": 1.0, "ended": "BindCraft gave up"}},
		"gives-up-early": {typ: "bindcraft", settings: `{"target":"TARGET","designs":3,"shortest":23}`, fails: "gave up before it accepted a design"},
		"fails":          {typ: "bindcraft", settings: `{"target":"TARGET","designs":3,"shortest":24}`, metrics: map[string]any{"designs": 1.0, "ended": "BindCraft failed"}},
	} {
		for file, id := range files {
			tt.settings = strings.ReplaceAll(tt.settings, `"`+file+`"`, `"`+id+`"`)
		}
		u.submit(name, tt.typ, tt.settings)
		r := u.finished(name)
		if tt.fails != "" && (r.Failure == nil || !strings.Contains(r.Failure.Message, tt.fails)) {
			t.Errorf("%s: %s, %+v, want a failure with %q", name, r.Status, r.Failure, tt.fails)
		}
		if tt.fails == "" && r.Status != "COMPLETED" {
			t.Errorf("%s: %+v", name, r.Failure)
			continue
		}
		for metric, want := range tt.metrics {
			if got := r.Metrics.Results[metric]; got != want {
				t.Errorf("%s: %s is %v, want %v", name, metric, got, want)
			}
		}
	}
}

// TestBindCraftKeepsDesignsWhenTimeIsUp resumes an attempt that has accepted a design, with
// a program that never ends.
func TestBindCraftKeepsDesignsWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(out, "Accepted"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(out, "Accepted", "binder_1.pdb"), []byte("END\n"), 0o600))
	script := filepath.Join(out, "bindcraft.py")
	must.OK(t, os.WriteFile(script, []byte("import signal\nsignal.pause()\n"), 0o600))
	design := exec.CommandContext(t.Context(), "/usr/bin/python3", "../../algorithm/builtin/catalogue/bindcraft/design.py", out, "2", script)
	design.Env = []string{"MOLRUN_SECONDS=2"}
	if said, err := design.CombinedOutput(); err != nil || !strings.Contains(string(said), "1 of 2 designs were accepted") {
		t.Fatalf("%v: %s", err, said)
	}
	must.Equal(t, "metrics", must.Read(t, filepath.Join(out, "metrics.json")), `{"ended": "the time was up"}`)
	must.OK(t, os.RemoveAll(filepath.Join(out, "Accepted")))
	design = exec.CommandContext(t.Context(), "/usr/bin/python3", "../../algorithm/builtin/catalogue/bindcraft/design.py", out, "2", script)
	design.Env = []string{"MOLRUN_SECONDS=1"}
	if said, err := design.CombinedOutput(); err == nil || !strings.Contains(string(said), "No design was accepted in the job's time") {
		t.Errorf("%v: %s", err, said)
	}
}
