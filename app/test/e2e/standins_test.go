package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// siteOfStandIns creates the directories and weights for [site.paths], with
// testdata/standins.py in place of each program, and returns the configuration.
func siteOfStandIns(t *testing.T) (config string) {
	t.Helper()
	root := t.TempDir()
	source := must.Read(t, "testdata/standins.py")
	paths := ""
	for _, site := range []struct {
		name, program string
		starts        []string // paths in the directory at which to put the stand-in
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
		{"esmfold_weights", "", nil, nil, nil},
		{"proteinmpnn", "", nil, nil, nil},
		{"ligandmpnn", "", nil, nil, nil},
		{"gnina", "gnina", []string{"gnina"}, nil, nil},
		{"immunebuilder", "", nil, nil, nil},
		{"rfdiffusion", "", nil, nil, nil},
		{"rfdiffusion_env", "", nil, nil, nil},
		{"rfdiffusion_models", "", nil, nil, nil},
		{"bindcraft", "", nil, nil, nil},
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
			must.OK(t, os.Truncate(filepath.Join(dir, name), size)) // a sparse file
		}
		paths += fmt.Sprintf("%s = %q\n", site.name, dir)
	}
	// Some programs use one interpreter for their own script and for molrun's. Their
	// version is read from its installed packages.
	for name, packages := range map[string][]string{
		"boltz": {"boltz-2.2.0"}, "chai": {"chai_lab-0.6.1"}, "colabfold": {"colabfold-1.6.2", "openmm-8.2.0", "jax_cuda12_plugin-0.10.2"}, "alphafold3/venv": {"alphafold3-3.0.4", "jax_cuda12_plugin-0.10.2"},
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
	must.OK(t, os.MkdirAll(filepath.Join(root, "alphafold3", "venv", "bin"), 0o755))
	python := filepath.Join(root, "alphafold3", "venv", "bin", "python")
	must.OK(t, os.WriteFile(python, fmt.Appendf(nil, "#!/bin/sh\nif test \"$1\" = -c; then PYTHONPATH=%[1]s/alphafold3/venv/packages exec /usr/bin/python3 \"$@\"; fi\n"+
		"shift\nexec /usr/bin/python3 %[1]s/alphafold3/standins.py alphafold3 \"$@\"\n", root), 0o755))
	designSites(t, root)
	config = filepath.Join(root, "config.toml")
	must.Write(t, config, "[database]\nfile_system = \"any\"\n[runner]\ncpus = 8\nmemory = \"64GiB\"\ngpus = \"0\"\n[site.paths]\n"+paths)
	return config
}

// withStandIns starts a service with the site of stand-ins, and also returns the site's
// directory. The configuration in the options is appended to the site's, which ends with
// [site.paths].
func withStandIns(t *testing.T, o serverOptions) (s *instance, site string) {
	t.Helper()
	needNumPy(t)
	config := siteOfStandIns(t)
	o.config = must.Read(t, config) + o.config
	s = startServer(t, o)
	if !s.sandboxed() {
		must.Skip(t, "no sandbox here")
	}
	return s, filepath.Dir(config)
}

// needNumPy skips a test whose scripts use the system's NumPy, unless it is installed.
func needNumPy(t *testing.T) {
	t.Helper()
	if exec.Command("/usr/bin/python3", "-c", "import numpy").Run() != nil {
		must.Skip(t, "the system's Python has no NumPy")
	}
}

// needRDKit skips a test whose scripts use RDKit, unless it is installed.
func needRDKit(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/lib/python3/dist-packages/rdkit"); err != nil {
		t.Skip("skipped: python3-rdkit is not installed; it is large, so .ci/algorithms small leaves it out")
	}
}

// TestTypesThatNeedWeightsRunWithStandIns runs the examples of the types marked as
// untested. Their command lines, inputs, tables and views must be as documented, whatever
// the programs compute.
func TestTypesThatNeedWeightsRunWithStandIns(t *testing.T) {
	t.Parallel()
	needNumPy(t)
	types := []string{"alphafold3", "bindcraft", "boltz", "chai-1", "colabfold", "esmfold", "immunebuilder", "ligandmpnn", "proteinmpnn", "rfdiffusion"}
	out, errs, code := outside(t, append([]string{"algorithms", "test", "--config", siteOfStandIns(t)}, types...)...)
	if code != 0 || !strings.Contains(out, "10 passed, 0 failed, 0 not ready") || strings.Contains(out, "nothing in") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}

// TestBindCraftKeepsDesignsWhenTimeIsUp resumes an attempt that has already accepted a
// design, with a program that never ends.
func TestBindCraftKeepsDesignsWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(out, "Accepted"), 0o700))
	must.Write(t, filepath.Join(out, "Accepted", "binder_1.pdb"), "END\n")
	script := filepath.Join(out, "bindcraft.py")
	must.Write(t, script, "import signal\nsignal.pause()\n")
	design := exec.CommandContext(t.Context(), "/usr/bin/python3", "../../algorithm/builtin/catalogue/bindcraft/design.py", out, "2", script)
	design.Env = []string{"MOLRUN_SECONDS=2"}
	if said, err := design.CombinedOutput(); err != nil || !strings.Contains(string(said), "1 of 2 designs were accepted") {
		t.Fatalf("%v: %s", err, said)
	}
	must.Equal(t, "metrics", must.Read(t, filepath.Join(out, "metrics.json")), `{"ended": "the time limit was reached"}`)
	// The table lists the design even though its metrics were not written.
	said, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "../../algorithm/builtin/catalogue/bindcraft/table.py", out).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "no metrics for binder_1, which is listed last") {
		t.Errorf("%v: %s", err, said)
	}
	must.Equal(t, "metrics with the table", must.Read(t, filepath.Join(out, "metrics.json")), `{"ended": "the time limit was reached", "designs": 1}`)
	must.OK(t, os.RemoveAll(filepath.Join(out, "Accepted")))
	design = exec.CommandContext(t.Context(), "/usr/bin/python3", "../../algorithm/builtin/catalogue/bindcraft/design.py", out, "2", script)
	design.Env = []string{"MOLRUN_SECONDS=1"}
	if said, err := design.CombinedOutput(); err == nil || !strings.Contains(string(said), "No design was accepted within the job's time limit") {
		t.Errorf("%v: %s", err, said)
	}
}

// designSites adds the environments and weights of the types that design proteins or fold
// designed proteins.
func designSites(t *testing.T, root string) {
	t.Helper()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text), 0o755))
	}
	// Each Python is the system's, with stand-ins for the modules of its environment.
	for python, modules := range map[string][]string{
		"esmfold/bin/python":          {"esm/__init__.py", "esm/esmfold/v1/esmfold.py"},
		"proteinmpnn/venv/bin/python": {"protein_mpnn_utils.py"},
		"ligandmpnn/venv/bin/python":  {"prody.py", "data_utils.py", "model_utils.py", "sc_utils.py"},
		"bindcraft_env/bin/python":    {"jax.py", "colabdesign.py", "pyrosetta.py", "Bio.py", "pandas.py"},
		"immunebuilder/bin/python":    {"ImmuneBuilder/__init__.py", "anarci.py", "openmm.py", "pdbfixer.py"},
		"rfdiffusion_env/bin/python":  {"hydra.py", "dgl.py", "se3_transformer.py", "rfdiffusion.py"},
	} {
		dir := filepath.Join(strings.Split(python, "/")[0], "modules")
		put(python, fmt.Sprintf("#!/bin/sh\nPYTHONPATH=%s exec /usr/bin/python3 \"$@\"\n", filepath.Join(root, dir)))
		put(filepath.Join(dir, "torch.py"), must.Read(t, "testdata/standin_torch.py"))
		for _, module := range modules {
			put(filepath.Join(dir, module), "")
		}
	}
	put("esmfold/modules/fair_esm-2.0.1.dist-info/METADATA", "Name: fair-esm\nVersion: 2.0.1\n")
	put("bindcraft/bindcraft.py", "import sys\nsys.argv.insert(1, 'bindcraft')\nimport standins\n")
	put("bindcraft/settings_filters/default_filters.json", "{}")
	put("bindcraft/settings_filters/peptide_filters.json", "{}")
	put("bindcraft/settings_advanced/default_4stage_multimer.json", "{}")
	put("bindcraft/settings_advanced/peptide_3stage_multimer_mpnn.json", "{}")
	put("bindcraft/.git/HEAD", "0ad85fbbde7e8d03da6d170ef5f0c318dc648f2b\n")
	put("bindcraft/.git/packed-refs", "90ad85fbbde7e8d03da6d170ef5f0c318dc648f2 refs/tags/v1.5.1\n^0ad85fbbde7e8d03da6d170ef5f0c318dc648f2b\n")
	for k := range 5 {
		for _, kind := range []string{"multimer_v3", "ptm"} {
			file := fmt.Sprintf("bindcraft/params/params_model_%d_%s.npz", k+1, kind)
			put(file, "")
			must.OK(t, os.Truncate(filepath.Join(root, file), 356<<20))
		}
	}
	put("rfdiffusion_env/modules/rfdiffusion-1.1.0.dist-info/METADATA", "Name: rfdiffusion\nVersion: 1.1.0\n")
	put("rfdiffusion/scripts/run_inference.py", "import sys\nsys.path.append(sys.path[0] + '/..')\nsys.argv.insert(1, 'rfdiffusion')\nimport standins\n")
	put("proteinmpnn/protein_mpnn_run.py", "import sys\nsys.argv.insert(1, 'proteinmpnn')\nimport standins\n")
	put("proteinmpnn/.git/HEAD", "ref: refs/heads/main\n")
	put("proteinmpnn/.git/refs/heads/main", "8907e6671bfbfc92303b5f79c4b5e6ce47cdef57\n")
	put("proteinmpnn/.git/packed-refs", "# pack-refs with: peeled\n0ad85fbbde7e8d03da6d170ef5f0c318dc648f2b refs/tags/v1.0.0\nb0ad85fbbde7e8d03da6d170ef5f0c318dc648f2 refs/tags/v1.0.1\n")
	put("immunebuilder/modules/ImmuneBuilder-1.2.dist-info/METADATA", "Name: ImmuneBuilder\nVersion: 1.2\n")
	for _, kind := range []string{"antibody", "nanobody", "tcr"} {
		for k := range 4 {
			put(fmt.Sprintf("immunebuilder/modules/ImmuneBuilder/trained_model/%s_model_%d", kind, k+1), strings.Repeat("0", 1<<20))
		}
	}
	for _, name := range []string{"ABodyBuilder2", "NanoBodyBuilder2", "TCRBuilder2"} {
		put("immunebuilder/bin/"+name, fmt.Sprintf("#!/bin/sh\nexec /usr/bin/python3 %s/immunebuilder/standins.py immunebuilder %s \"$@\"\n", root, name))
	}
	put("ligandmpnn/run.py", "import sys\nsys.argv.insert(1, 'ligandmpnn')\nimport standins\n")
	put("ligandmpnn/.git/HEAD", "26ec57ac976ade5379920dbd43c7f97a91cf82de\n")
	for _, model := range strings.Fields("ligandmpnn_v_32_005_25 ligandmpnn_v_32_010_25 ligandmpnn_v_32_020_25 ligandmpnn_v_32_030_25 proteinmpnn_v_48_002 proteinmpnn_v_48_010 " +
		"proteinmpnn_v_48_020 proteinmpnn_v_48_030 solublempnn_v_48_002 solublempnn_v_48_010 solublempnn_v_48_020 solublempnn_v_48_030 " +
		"global_label_membrane_mpnn_v_48_020 ligandmpnn_sc_v_32_002_16") {
		put("ligandmpnn/model_params/"+model+".pt", "")
	}
	for _, model := range []string{"vanilla", "soluble", "ca"} {
		for _, noise := range []string{"002", "010", "020", "030"} {
			file := filepath.Join("proteinmpnn", model+"_model_weights", "v_48_"+noise+".pt")
			put(file, "")
			must.OK(t, os.Truncate(filepath.Join(root, file), map[string]int64{"vanilla": 6681301, "soluble": 6681301, "ca": 6624011}[model]))
		}
	}
	for file, size := range map[string]int64{
		"rfdiffusion_models/Base_ckpt.pt":                                         483616107,
		"rfdiffusion_models/Complex_base_ckpt.pt":                                 483619179,
		"rfdiffusion_models/InpaintSeq_ckpt.pt":                                   483619243,
		"rfdiffusion_models/ActiveSite_ckpt.pt":                                   483616107,
		"esmfold_weights/hub/checkpoints/esmfold_3B_v1.pt":                        2771653574,
		"esmfold_weights/hub/checkpoints/esm2_t36_3B_UR50D.pt":                    5678116398,
		"esmfold_weights/hub/checkpoints/esm2_t36_3B_UR50D-contact-regression.pt": 6759,
	} {
		put(file, "")
		must.OK(t, os.Truncate(filepath.Join(root, file), size)) // a sparse file
	}
}

// secondChain returns the atoms of a PDB file as chain B, 100 Å away.
func secondChain(t *testing.T, pdb string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(pdb) {
		if strings.HasPrefix(line, "ATOM") {
			x, err := strconv.ParseFloat(strings.TrimSpace(line[30:38]), 64)
			must.OK(t, err)
			fmt.Fprintf(&b, "%sB%s%8.3f%s", line[:21], line[22:30], x+100, line[38:])
		}
	}
	return b.String()
}

// TestDesignTypesDoWhatTheyAreAsked runs the types that design proteins or fold designed
// proteins, with inputs for which the programs themselves would not do what was
// requested.
func TestDesignTypesDoWhatTheyAreAsked(t *testing.T) {
	t.Parallel()
	must.InstalledFile(t, "/usr/bin/python3", "python3")
	config := siteOfStandIns(t)
	s := startServer(t, serverOptions{config: must.Read(t, config)})
	if !s.sandboxed() {
		must.Skip(t, "no sandbox here")
	}
	u := s.user("lab", "ann@lab.example")
	type wanted struct {
		typ, settings string
		fails         string         // part of the failure message
		metrics       map[string]any // expected metrics in the result
		file, lines   string         // a file in the result, and some of its lines
	}
	run := func(name string, tt wanted) {
		t.Helper()
		r := u.finished(name)
		if tt.fails != "" && (r.Failure == nil || !strings.Contains(r.Failure.Message, tt.fails)) {
			t.Errorf("%s: %s, %+v, want a failure with %q", name, r.Status, r.Failure, tt.fails)
		}
		if tt.fails == "" && r.Status != "COMPLETED" {
			t.Errorf("%s: %+v", name, r.Failure)
			return
		}
		for metric, want := range tt.metrics {
			if got := r.Metrics.Results[metric]; got != want {
				t.Errorf("%s: %s is %v, want %v", name, metric, got, want)
			}
		}
		if tt.file != "" {
			must.Contain(t, fmt.Sprintf("%s: %s", name, tt.file), strings.ReplaceAll(string(u.result(name, tt.file)), "\r\n", "\n"), tt.lines)
		}
	}
	long := strings.Repeat("MKVLAAGIVG", 12)
	jobs := map[string]wanted{
		"esm-names": {
			typ: "esmfold", settings: `{"sequences":"` + u.upload("a.fasta", ">LYSC/19-30 first\nMKVLAAGIVG\n>a\nmkvlaagivg\n>a\nMKVLAAGI\n") + `"}`,
			metrics: map[string]any{"structures": 3.0, "missing": 0.0, "plddt": 77.0, "ptm": 0.712},
			file:    "structures.csv", lines: "LYSC_19-30,10,77.0,0.712,0,LYSC/19-30 first,LYSC_19-30.pdb,\na,10,77.0,0.712,0,a,a.pdb,\na_2,8,77.0,0.712,0,a,a_2.pdb,\n",
		},
		"esm-one-of-two": {
			typ: "esmfold", settings: `{"batch":7,"sequences":"` + u.upload("b.fasta", ">a\nMKVLAAGIVG\n>b\n"+long+"\n") + `"}`,
			metrics: map[string]any{"structures": 1.0, "missing": 1.0},
			file:    "structures.csv", lines: "b,120,,,0,b,,no structure: not enough GPU memory\n",
		},
		"esm-none": {typ: "esmfold", settings: `{"batch":7,"sequences":"` + u.upload("c.fasta", ">b\n"+long+"\n") + `"}`, fails: "The GPU ran out of memory"},
	}
	lysozyme := must.Read(t, "../../algorithm/builtin/catalogue/bindcraft/example/lysozyme.pdb")
	target, dimer := u.upload("target.pdb", lysozyme), u.upload("dimer.pdb", strings.Replace(lysozyme, "\nEND", "\n", 1)+secondChain(t, lysozyme))
	heavy := "EVQLVESGGGVVQPGGSLRLSCAASGFTFNSYGMHWVRQAPGKGLEWVAFIRYDGGNKYYADSVKGRFTISRDNSKNTLYLQMKSLRAEDTAVYYCANLKDSRYSGSYYDYWGQGTLVTV"
	complexed := u.upload("complex.pdb", must.Read(t, "../../algorithm/builtin/catalogue/ligandmpnn/example/lysozyme-ligand.pdb"))
	for name, tt := range map[string]wanted{
		"mpnn-redesign": {
			typ: "proteinmpnn", settings: `{"structure":"` + target + `","sequences":1,"redesign":"A28-30","bias":"W=0.5 A=-1"}`,
			metrics: map[string]any{"designs": 1.0, "given_score": 1.9}, file: "designs.fasta", lines: ">design_1 score=1.0\nKVFGRCELAWWWKRHGLDN",
		},
		"mpnn-tied": {
			typ: "proteinmpnn", settings: `{"structure":"` + dimer + `","sequences":2,"tied":true,"fixed":"A19-28","model":"soluble"}`,
			file: "designs.fasta", lines: ">design_1_A score=1.0\nKVFGRCELAAGGGG", metrics: map[string]any{"designs": 2.0},
		},
		"mpnn-scores": {
			typ: "proteinmpnn", settings: `{"structure":"` + dimer + `","chains":"A","score_only":true,"candidates":"` + u.upload("d.fasta", ">poly\n"+strings.Repeat("AG", 64)+"A\n") + `"}`,
			metrics: map[string]any{"score": 1.4, "given_score": 1.7012}, file: "scores.csv", lines: "poly,1.4,0.03,1.8,2\ngiven,1.7012,",
		},
		"lig-near": {
			typ: "ligandmpnn", settings: `{"structure":"` + complexed + `","sequences":1,"redesign":"A76-82","bias":"W=0.5","keep_context":true}`,
			metrics: map[string]any{"designs": 1.0, "designed_residues": 7.0, "confidence": 0.49, "ligand_confidence": 0.4}, file: "designs.fasta", lines: "TDYGILQWWWWWWWNDGRTPG",
		},
		"lig-far": { // the program itself would report 1
			typ: "ligandmpnn", settings: `{"structure":"` + complexed + `","sequences":1,"redesign":"A19-22"}`,
			metrics: map[string]any{"ligand_confidence": nil, "ligand_residues": nil}, file: "designs.csv", lines: "1,0.49,,0.45,GGGGRCEL",
		},
		"lig-tied": {
			typ: "ligandmpnn", settings: `{"structure":"` + dimer + `","sequences":2,"tied":true,"fixed":"A19-28,B19-28","model":"soluble","side_chains":true}`,
			metrics: map[string]any{"designs": 2.0, "ligand_confidence": nil}, file: "designs.fasta", lines: ">design_1_A confidence=0.49\nKVFGRCELAAGGGG",
		},
		"lig-other-chain": {typ: "ligandmpnn", settings: `{"structure":"` + target + `","chains":"Z"}`, fails: "The structure has no chain Z: its chains are A."},
		"ab-long": { // with a constant domain, and a line break at which the program would stop reading
			typ: "immunebuilder", settings: `{"heavy":"` + heavy[:60] + `\n` + strings.ToLower(heavy[60:]) + `ASTKGPSV","light":"` + heavy + `"}`,
			metrics: map[string]any{"program": "ABodyBuilder2", "residues": 240.0, "left_out": 8.0, "error_A": 0.417, "loop_error_A": 1.5},
			file:    "chains.csv", lines: "H,128,120,0.417,only the variable domain was built\nL,120,120,0.417,\n",
		},
		"nanobody": {
			typ: "immunebuilder", settings: `{"heavy":"` + heavy + `","numbering":"raw"}`,
			metrics: map[string]any{"program": "NanoBodyBuilder2", "residues": 120.0, "left_out": 0.0, "loop_error_A": nil},
		},
		"receptor": {
			typ: "immunebuilder", settings: `{"alpha":"` + heavy + `","beta":"` + heavy + `"}`,
			metrics: map[string]any{"program": "TCRBuilder2", "residues": 240.0}, file: "residues.csv", lines: "residue,chain,number,name,error_A\n1,B,1,GLU,0.25\n",
		},
		"no-receptor": {typ: "immunebuilder", settings: `{"heavy":"` + strings.Repeat("G", 100) + `"}`, fails: "The sequence given as chain H is not recognized"},
		"rfd-length": {
			typ: "rfdiffusion", settings: `{"contigs":"100","designs":2,"seed":7,"symmetry":"C2","potential":"contacts"}`,
			metrics: map[string]any{"designs": 2.0, "mean_length": 100.0}, file: "designs.csv", lines: "design_7,100,100,100,2,",
		},
		"rfd-motif": {
			typ: "rfdiffusion", settings: `{"structure":"` + target + `","contigs":"10/A35/10","designs":1,"weights":"active_site","trajectories":true}`,
			metrics: map[string]any{"mean_length": 21.0}, file: "design_0.trb", lines: "ActiveSite_ckpt.pt",
		},
		"rfd-binder": {
			typ: "rfdiffusion", settings: `{"structure":"` + target + `","contigs":"A30-60/0 50-50","hotspots":["A40"],"designs":1}`,
			metrics: map[string]any{"designs": 1.0, "mean_length": 50.0}, file: "design_0.trb", lines: "Complex_base_ckpt.pt",
		},
		"rfd-hidden": {
			typ: "rfdiffusion", settings: `{"structure":"` + target + `","contigs":"10/A35-40/10","hide_sequence":"A35/A38-39","designs":1}`,
			file: "design_0.trb", lines: "InpaintSeq_ckpt.pt",
		},
		"rfd-partial": {
			typ: "rfdiffusion", settings: `{"structure":"` + target + `","contigs":"129","partial":20,"noise":0.5,"designs":1}`,
			file: "design_0.trb", lines: "Base_ckpt.pt",
		},
		"rfd-no-residue": {typ: "rfdiffusion", settings: `{"structure":"` + target + `","contigs":"A1-40/0 50"}`, fails: "The contigs name residue A1, which the structure does not have."},
		"rfd-no-weights": {typ: "rfdiffusion", settings: `{"structure":"` + target + `","contigs":"A30-60/0 50","weights":"beta_binders"}`, fails: "The weights Complex_beta_ckpt.pt are not installed"},
		"bind-all": { // the second design has the higher pLDDT, the first the better ipTM
			typ: "bindcraft", settings: `{"target":"` + target + `","designs":2,"hotspots":"A35-37,53","protocol":"peptide","filters":"peptide","redesign_interface":true}`,
			metrics: map[string]any{"designs": 2.0, "iptm": 0.8, "plddt": 81.0, "dG": -41.5, "ended": "all requested designs were accepted"},
			file:    "designs.csv", lines: "1,binder_l80_s1_mpnn1,80,0.80,0.81,0.2,-41.5,,,,,MKV,Accepted/binder_l80_s1_mpnn1_model1.pdb\n2,binder_l80_s1_mpnn2,80,0.75,0.82,",
		},
		"bind-gives-up":       {typ: "bindcraft", settings: `{"target":"` + target + `","designs":3,"shortest":22}`, metrics: map[string]any{"designs": 1.0, "iptm": 0.8, "ended": "too few attempts succeeded"}},
		"bind-gives-up-early": {typ: "bindcraft", settings: `{"target":"` + target + `","designs":3,"shortest":23}`, fails: "gave up before it accepted a design"},
		"bind-fails":          {typ: "bindcraft", settings: `{"target":"` + target + `","designs":3,"shortest":24}`, metrics: map[string]any{"designs": 1.0, "ended": "BindCraft failed"}},
		"bind-no-chain":       {typ: "bindcraft", settings: `{"target":"` + target + `","chains":"A,Q"}`, fails: "The target has no chain Q: its chains are A."},
		"bind-no-settings":    {typ: "bindcraft", settings: `{"target":"` + target + `","protocol":"betasheet"}`, fails: "This server's BindCraft lacks settings_advanced/betasheet_4stage_multimer.json."},
		"mpnn-other-chain":    {typ: "proteinmpnn", settings: `{"structure":"` + target + `","chains":"Z"}`, fails: "The structure has no chain Z: its chains are A."},
	} {
		jobs[name] = tt
	}
	for name, tt := range jobs {
		u.submit(name, tt.typ, tt.settings)
	}
	for name, tt := range jobs {
		run(name, tt)
	}
	for name, version := range map[string]string{"esm-names": "2.0.1", "mpnn-tied": "1.0.1.8907e66", "lig-near": "26ec57a", "rfd-binder": "1.1.0", "bind-all": "1.5.1"} {
		must.Equal(t, "version of "+name, u.job(name).ProgramVersion, version)
	}
	for setting, settings := range map[string]string{
		"structure":  `{"structure":"` + target + `","contigs":"60-60"}`,
		"candidates": `{"structure":"` + target + `","candidates":"` + u.upload("e.fasta", ">poly\nMKVLAAG\n") + `"}`,
	} {
		typ := map[string]string{"structure": "rfdiffusion", "candidates": "proteinmpnn"}[setting]
		u.do("POST", "/submit-job", `{"jobName":"refused","type":"`+typ+`","settings":`+settings+`}`).want(422).detail("body.settings." + setting)
	}
	// Without a GPU, no program is started.
	without := map[string]wanted{}
	for site, like := range map[string]string{"esmfold": "esm-names", "proteinmpnn": "mpnn-redesign", "rfdiffusion_env": "rfd-length"} {
		must.Write(t, filepath.Join(filepath.Dir(config), site, "modules", "gpu-error"), "Found no NVIDIA driver on your system.")
		name, settings := like+"-without-gpu", jobs[like].settings
		if site == "proteinmpnn" {
			settings = strings.Replace(settings, "{", `{"gpu":true,`, 1)
		}
		without[name] = wanted{fails: "found no GPU or no GPU driver on this server"}
		u.submit(name, jobs[like].typ, settings)
	}
	must.Write(t, filepath.Join(filepath.Dir(config), "bindcraft", "no-gpu"), "")
	without["bind-all-without-gpu"] = wanted{fails: "found no GPU or no GPU driver on this server"}
	u.submit("bind-all-without-gpu", "bindcraft", jobs["bind-all"].settings)
	for name, tt := range without {
		run(name, tt)
	}
}

// TestGNINARanksLigandsByItsNetworks needs RDKit and Open Babel, which prepare the
// ligands for the stand-in.
func TestGNINARanksLigandsByItsNetworks(t *testing.T) {
	t.Parallel()
	must.Installed(t, "obabel")
	needRDKit(t)
	config := siteOfStandIns(t)
	out, errs, code := outside(t, "algorithms", "test", "--config", config, "gnina")
	if code != 0 || !strings.Contains(out, "1 passed, 0 failed, 0 not ready") {
		t.Fatalf("%d: %s%s", code, out, errs)
	}
	s := startServer(t, serverOptions{config: must.Read(t, config)})
	if !s.sandboxed() {
		must.Skip(t, "no sandbox here")
	}
	u := s.user("lab", "ann@lab.example")
	files := map[string]string{
		"LYSOZYME": u.upload("lysozyme.pdb", must.Read(t, "../../algorithm/builtin/catalogue/gnina/example/lysozyme.pdb")),
		"LIGANDS":  u.upload("ligands.csv", "name,smiles\nsugar,CC(=O)NC1C(O)OC(CO)C(O)C1O\nbromide,CCCBr\nbroken,C1CC\n"),
	}
	at := `"receptor":"LYSOZYME","residues":"A:53 A:70 A:77","modes":2`
	u.predict("gnina", filepath.Join(filepath.Dir(config), "gnina"), files, map[string]prediction{
		"table":  {settings: `{` + at + `,"ligands":"LIGANDS"}`, metrics: map[string]any{"ligands": 1.0, "failed": 2.0, "cnn_vs": 4.5, "cnn_score": 0.9, "cnn_affinity": 5.0, "affinity": -6.5}},
		"cpus":   {settings: `{` + at + `,"smiles":"CCCO","gpu":false,"model":"fast"}`, mode: "no-gpu", metrics: map[string]any{"cnn_vs": 2.0}},
		"no-gpu": {settings: `{` + at + `,"smiles":"CCCO"}`, mode: "no-gpu", fails: "GNINA found no GPU on this server"},
		"large":  {settings: `{` + at + `,"smiles":"CCCO"}`, mode: "oom", fails: "The GPU ran out of memory"},
		"none":   {settings: `{` + at + `,"smiles":"CCCBr"}`, fails: `No ligand could be docked. molecule: GNINA failed: Parse error on line 5 in file "ligand.sdf": unknown atom`},
	})
	must.Contain(t, "poses", strings.ReplaceAll(string(u.result("table", "poses.csv")), "\r\n", "\n"), "sugar,1,0.9000,5.000,-6.500\nsugar,2,0.8000,4.900,-6.400\n")
	must.Contain(t, "warnings", strings.Join(u.job("cpus").Warnings, "\n"), "CNN score of 0.40")
	must.Equal(t, "version", u.job("table").ProgramVersion, "1.3.2")
}

// comparer replaces openstructure, whose real program is large.
const comparer = `format = 1
type = "openstructure"
version = "stand-in"
command = ["cp", "{files.model}", "{files.reference}", "{out}"]
[[texts]]
file = "{out}/metrics.json"
text = '{"rmsd_A": 1.5}'
[[parameters]]
name = "model"
file = [".pdb", ".cif"]
required = true
[[parameters]]
name = "reference"
file = [".pdb", ".cif"]
required = true
[[parameters]]
name = "alpha_carbons"
type = "boolean"
[metrics]
rmsd_A = { title = "RMSD", unit = "Å", better = "lower" }
`

// TestPipelinesOfTheExamples submits the job lists in app/client/examples.
func TestPipelinesOfTheExamples(t *testing.T) {
	t.Parallel()
	s, _ := withStandIns(t, serverOptions{algorithms: map[string]string{"openstructure.toml": comparer}})
	lysozyme := must.Read(t, "../../algorithm/builtin/catalogue/bindcraft/example/lysozyme.pdb")
	run := func(t *testing.T, name string, files map[string]string, replace ...string) (u user, p *person) {
		t.Helper()
		s := *s
		s.t = t
		u = s.user(name, "ann@lab.example")
		p = u.person()
		for file, text := range files {
			must.Write(t, filepath.Join(p.dir, file), text)
		}
		must.Write(t, filepath.Join(p.dir, name+".yaml"), strings.NewReplacer(replace...).Replace(must.Read(t, "../../client/examples/"+name+".yaml")))
		p.ok("batch", "-i", name+".yaml", "--wait")
		return u, p
	}
	t.Run("design", func(t *testing.T) {
		u, p := run(t, "design", map[string]string{"target.pdb": lysozyme})
		must.Contain(t, "chains", string(u.result("design-0-sequence", "designs.fasta")), ">design_1_A confidence=0.49\n"+strings.Repeat("G", 40))
		must.Contain(t, "ranked by ipTM", p.ok("table", "design", "--sort", "iptm", "--csv"), "design-1-complex")
		must.Contain(t, "ranked by RMSD", p.ok("table", "design", "--sort", "rmsd_A", "--csv"), "design-1-check")
	})
	t.Run("screen", func(t *testing.T) {
		for _, program := range []string{"vina", "obabel", "plipcmd", "pdb2pqr"} {
			must.Installed(t, program)
		}
		needRDKit(t)
		u, _ := run(t, "screen", map[string]string{"protein.pdb": lysozyme, "ligands.csv": "name,smiles\nsugar,CC(=O)NC1C(O)OC(CO)C(O)C1O\n"}, "exhaustiveness: 8", "exhaustiveness: 1")
		if n, _ := u.completed("screen-interactions").Metrics.Results["interactions"].(float64); n < 1 {
			t.Errorf("interactions: %v", n)
		}
	})
	t.Run("compare", func(t *testing.T) {
		must.Installed(t, "TMalign")
		u, _ := run(t, "compare", map[string]string{"protein.fasta": ">lysozyme\n" + strings.Repeat("KVFGRCELAA", 3) + "\n", "known.pdb": lysozyme}, "{msa: search}", "{}")
		must.Equal(t, "RMSD", u.completed("compare-residues").Metrics.Results["rmsd_A"], any(1.5))
		u.completed("compare-fold")
	})
}
