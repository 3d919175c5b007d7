package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// prediction is a job of a structure-prediction type, and its expected outcome.
type prediction struct {
	settings string
	mode     string         // name of a file next to the stand-in that makes it fail
	refused  string         // part of the rejection of the submission
	fails    string         // part of the failure message
	metrics  map[string]any // expected values in the result; nil means that the metric is absent
}

// predict submits jobs that run a program's stand-in from the site's directory, and
// checks their outcomes.
func (u user) predict(typ, folder string, files map[string]string, jobs map[string]prediction) {
	u.t.Helper()
	for name, p := range jobs {
		for file, id := range files {
			p.settings = strings.ReplaceAll(p.settings, `"`+file+`"`, `"`+id+`"`)
		}
		if p.mode != "" {
			must.Write(u.t, filepath.Join(folder, p.mode), "")
		}
		body := `{"jobName":"` + name + `","type":"` + typ + `","settings":` + p.settings + `}`
		answer := u.do("POST", "/submit-job", body)
		if p.refused != "" {
			must.Contain(u.t, name, strings.Join(answer.want(422).details(), "\n"), p.refused)
			continue
		}
		answer.want(200)
		r := u.finished(name)
		switch {
		case p.fails != "" && (r.Failure == nil || !strings.Contains(r.Failure.Message, p.fails)):
			u.t.Errorf("%s: %s, %+v, want a failure with %q", name, r.Status, r.Failure, p.fails)
		case p.fails == "" && r.Status != "COMPLETED":
			u.t.Errorf("%s: %+v", name, r.Failure)
		}
		for metric, want := range p.metrics {
			if got := r.Metrics.Results[metric]; got != want {
				u.t.Errorf("%s: %s is %v, want %v", name, metric, got, want)
			}
		}
		if p.mode != "" {
			must.OK(u.t, os.Remove(filepath.Join(folder, p.mode)))
		}
	}
}

// predictors starts a service with stand-ins, and uploads the input files of their jobs.
func predictors(t *testing.T) (u user, site string, files map[string]string) {
	t.Helper()
	s, site := withStandIns(t, serverOptions{})
	u = s.user("lab", "ann@lab.example")
	files = map[string]string{}
	for name, text := range map[string]string{
		"ONE.fasta": ">A\nMKVLAAGIVG\n", "TWO.fasta": ">A\nMKVLAAGIVG\n>B\nMKVLAAGIVG\n", "PAIR.fasta": ">A\nMKVLAAGIVG\n>B\nGGSWSDEEKK\n",
		"LARGE.fasta": ">A\n" + strings.Repeat("MKVLAAGIVG", 250) + "\n", "SEC.fasta": ">A\nMKVLAAUIVG\n",
		"OWN.a3m": "#10\t1\n>A\nMKVLAA\nGIVG\n>B\nMKVaaL-A\nGIVG\n", "OTHER.a3m": ">A\nMKVLAAGIVC\n>B\nMKVLAAGIVG\n",
		"RAGGED.a3m": ">A\nMKVLAAGIVG\n>B\nMKVLAAGIV\n", "PROSE.a3m": "Dear all, here is the alignment.\n", "STOP.a3m": ">A\nMKVLAAGIVG\n>B\nMKVLAAGIV*\n",
		"COLON.fasta": ">A\nMKVLAAGIVG:GGSWSDEEKK\n", "DNA.fasta": ">A\nMKVLAAGIVG\n>B\nACGTACGTACGTACGTACGT\n", "SEARCH.a3m": "#10,9\t1,1\n>101\t102\nMKVLAAGIVGGGSWSDEEKK\n",
		"TEMPLATE.pdb": must.Read(t, "../../algorithm/builtin/catalogue/bindcraft/example/lysozyme.pdb"),
	} {
		key, _, _ := strings.Cut(name, ".")
		files[key] = u.upload(strings.ToLower(name), text)
	}
	return u, site, files
}

func TestBoltzSaysWhatItDidNotDo(t *testing.T) {
	t.Parallel()
	u, site, files := predictors(t)
	ok := map[string]any{"ptm": 0.78}
	u.predict("boltz", filepath.Join(site, "boltz"), files, map[string]prediction{
		"one":            {settings: `{"proteins":"ONE"}`, metrics: map[string]any{"ptm": 0.78, "iptm": nil}},
		"two":            {settings: `{"proteins":"TWO","alignments":["OWN"]}`, metrics: map[string]any{"iptm": 0.6}},
		"all":            {settings: `{"proteins":"PAIR","dna":["ACGT"],"rna":["acgu"],"ccd":["ATP"],"ligands":["CCO"],"modifications":["A:2:SEP"],"cyclic":["B"],"pocket":["A:2"],"contacts":["A:1-B:3"],"bonds":["A:3:SG-F:1:C04"],"templates":["TEMPLATE"],"no_kernels":true}`, metrics: ok},
		"affinity":       {settings: `{"proteins":"ONE","ligands":["CCO"],"affinity":true}`, metrics: map[string]any{"affinity": -0.7}},
		"affinity-oom":   {settings: `{"proteins":"ONE","ligands":["CCO"],"affinity":true}`, mode: "affinity-oom", metrics: map[string]any{"affinity": nil, "affinity_missing": "not computed: the GPU did not have enough memory", "ptm": 0.78}},
		"other-protein":  {settings: `{"proteins":"ONE","alignments":["OTHER"]}`, refused: "body.settings.alignments.0: starts with a sequence that is not one of the protein chains"},
		"ragged":         {settings: `{"proteins":"ONE","alignments":["RAGGED"]}`, refused: "record 2 has 9 columns and the chain has 10"},
		"prose":          {settings: `{"proteins":"ONE","alignments":["PROSE"]}`, refused: "is not an A3M file: it has no record"},
		"stop":           {settings: `{"proteins":"ONE","alignments":["STOP"]}`, refused: "a sequence contains '*'"},
		"second":         {settings: `{"proteins":"TWO","alignments":["OWN","OWN"]}`, refused: "body.settings.alignments.1: is a second alignment for the same chain"},
		"open-ring":      {settings: `{"proteins":"ONE","ligands":["CCO","C1CC"]}`, refused: "body.settings.ligands.1: is not a valid SMILES: ring 1 is not closed"},
		"valence":        {settings: `{"proteins":"ONE","ligands":["C(C)(C)(C)(C)C"]}`, fails: "can't read the SMILES of a ligand"},
		"no-such-ccd":    {settings: `{"proteins":"ONE","ccd":["XXXXX"]}`, fails: "has no component XXXXX"},
		"no-atom":        {settings: `{"proteins":"ONE","ccd":["ATP"],"bonds":["A:3:XX-B:1:C04"]}`, fails: "A bond names atom XX in chain A"},
		"no-ligand":      {settings: `{"proteins":"ONE","affinity":true}`, refused: "body.settings.affinity: needs a ligand"},
		"twice":          {settings: `{"proteins":"ONE","ligands":["CCO","CCO"],"affinity":true}`, refused: "body.settings.affinity: can't be computed: the complex has several copies of the first ligand"},
		"no-residue":     {settings: `{"proteins":"PAIR","contacts":["A:1-B:30"]}`, refused: "names residue B:30, which does not exist: the chains, in the order proteins, DNA, RNA, are A (10 residues), B (10 residues)"},
		"one-of-two":     {settings: `{"proteins":"TWO","modifications":["A:2:SEP"]}`, refused: "differ between chains A and B"},
		"selenocysteine": {settings: `{"proteins":"SEC"}`, refused: "has U at A:7, which Boltz reads as an unknown residue"},
		"no-search":      {settings: `{"proteins":"ONE","msa":"search"}`, refused: "body.settings.msa: needs a job of type msa, but msa is not ready on this server: "},
		"large":          {settings: `{"proteins":"LARGE"}`, fails: "The GPU ran out of memory for this complex"},
		"no-gpu":         {settings: `{"proteins":"ONE"}`, mode: "no-gpu", fails: "found no GPU on this server"},
		"cuda-old":       {settings: `{"proteins":"ONE"}`, mode: "cuda-old", fails: "the NVIDIA driver is too old for its PyTorch"},
		"no-kernels":     {settings: `{"proteins":"ONE"}`, mode: "no-kernels", fails: "set no_kernels, or ask the administrator to install boltz[cuda]"},
	})
}

func TestChaiSaysWhatItDidNotDo(t *testing.T) {
	t.Parallel()
	u, site, files := predictors(t)
	u.predict("chai-1", filepath.Join(site, "chai"), files, map[string]prediction{
		"one":        {settings: `{"proteins":"ONE"}`, metrics: map[string]any{"ptm": 0.74, "iptm": nil, "clashes": "no", "plddt": 80.0}},
		"two":        {settings: `{"proteins":"TWO","alignments":["OWN"],"embeddings":false}`, metrics: map[string]any{"iptm": 0.4}},
		"all":        {settings: `{"proteins":"PAIR","dna":["ACGT"],"rna":["acgu"],"ligands":["CCO"],"modifications":["A:2:SEP"],"pocket":["A:3"],"contacts":["A:1-B:3"]}`, metrics: map[string]any{"iptm": 0.4, "plddt": 80.0}},
		"other":      {settings: `{"proteins":"ONE","alignments":["OTHER"]}`, refused: "alignments.0: starts with a sequence that is not one"},
		"open-ring":  {settings: `{"proteins":"ONE","ligands":["CCO","C1CC"]}`, refused: "ligands.1: is not a valid SMILES: ring 1 is not closed"},
		"valence":    {settings: `{"proteins":"ONE","ligands":["CCO","C(C)(C)(C)(C)C"]}`, fails: "can't read ligand 2"},
		"large":      {settings: `{"proteins":"LARGE"}`, refused: "body.settings.proteins"},
		"atoms":      {settings: `{"proteins":"ONE","ligands":["` + strings.Repeat("C", 900) + `","` + strings.Repeat("C", 900) + `","` + strings.Repeat("C", 900) + `"]}`, refused: "2710 residues and ligand atoms; Chai-1 accepts at most 2048"},
		"within":     {settings: `{"proteins":"PAIR","contacts":["A:1-A:3"]}`, refused: "is within one chain"},
		"both":       {settings: `{"proteins":"ONE","alignments":["OWN"],"modifications":["A:2:SEP"]}`, refused: "which also has an alignment that Chai-1 would then not find"},
		"no-gpu":     {settings: `{"proteins":"ONE"}`, mode: "no-gpu", fails: "found no GPU on this server"},
		"cuda-old":   {settings: `{"proteins":"ONE"}`, mode: "cuda-old", fails: "the NVIDIA driver is too old for its PyTorch"},
		"no-residue": {settings: `{"proteins":"PAIR","pocket":["C:1"],"ligands":["CCO"]}`, refused: "names residue C:1, which does not exist"},
	})
}

func TestAlphaFold3SaysWhatItDidNotDo(t *testing.T) {
	t.Parallel()
	u, site, files := predictors(t)
	u.predict("alphafold3", filepath.Join(site, "alphafold3"), files, map[string]prediction{
		"one":         {settings: `{"proteins":"ONE"}`, metrics: map[string]any{"ptm": 0.8, "iptm": nil, "clash": 0.0}},
		"all":         {settings: `{"proteins":"TWO","alignments":["OWN"],"dna":["ACGT"],"rna":["acgu"],"ligands":["CCO"],"ccd":["ATP"],"modifications":["A:2:SEP","C:1:6OG"],"bonds":["A:3:SG-F:1:C04"],"seeds":3,"recycling":3}`, metrics: map[string]any{"iptm": 0.7}},
		"old-gpu":     {settings: `{"proteins":"ONE","older_gpu":true}`, mode: "cuda-7", metrics: map[string]any{"ptm": 0.8}},
		"cuda-7":      {settings: `{"proteins":"ONE"}`, mode: "cuda-7", fails: "set older_gpu"},
		"no-gpu":      {settings: `{"proteins":"ONE"}`, mode: "no-gpu", fails: "found no GPU on this server"},
		"other":       {settings: `{"proteins":"ONE","alignments":["OTHER"]}`, refused: "alignments.0: starts with a sequence that is not one"},
		"open-ring":   {settings: `{"proteins":"ONE","ligands":["C1CC"]}`, refused: "ligands.0: is not a valid SMILES: ring 1 is not closed"},
		"valence":     {settings: `{"proteins":"ONE","ligands":["C(C)(C)(C)(C)C"]}`, fails: "can't read the SMILES C(C)(C)(C)(C)C"},
		"no-such-ccd": {settings: `{"proteins":"ONE","ccd":["XXXXX"]}`, fails: "has no entry XXXXX"},
		"bond":        {settings: `{"proteins":"PAIR","bonds":["A:3:SG-B:1:SG"]}`, refused: "bonds.0: must include a ligand given by CCD code"},
		"large":       {settings: `{"proteins":"LARGE"}`, fails: "The GPU ran out of memory"},
	})
}

func TestColabFoldSaysWhatItDidNotDo(t *testing.T) {
	t.Parallel()
	u, site, files := predictors(t)
	u.predict("colabfold", filepath.Join(site, "colabfold"), files, map[string]prediction{
		"one":       {settings: `{"sequence":"ONE","models":1}`, metrics: map[string]any{"plddt": 85.0, "iptm": nil}},
		"records":   {settings: `{"sequence":"PAIR","models":2,"seeds":2,"stop_at":90,"tolerance":0.5,"dropout":true,"max_msa":"32:64"}`, metrics: map[string]any{"iptm": 0.6}},
		"colon":     {settings: `{"sequence":"COLON","models":1}`, metrics: map[string]any{"iptm": 0.6}},
		"alignment": {settings: `{"alignment":"OWN","models":1,"weights":"alphafold2_ptm"}`, metrics: map[string]any{"plddt": 85.0}},
		"search":    {settings: `{"alignment":"SEARCH"}`, refused: "gives its chains 19 residues, but its first record has 20"},
		"ragged":    {settings: `{"alignment":"RAGGED"}`, refused: "record 2 has 9 columns"},
		"prose":     {settings: `{"alignment":"PROSE"}`, refused: "is not an A3M file: it has no record"},
		"dna":       {settings: `{"sequence":"DNA"}`, refused: "has DNA as chain 2"},
		"letter":    {settings: `{"sequence":"SEC"}`, refused: "has 'U' in chain 1"},
		"no-openmm": {settings: `{"sequence":"ONE","relax":true}`, mode: "no-openmm", fails: "turn off relax"},
		"no-gpu":    {settings: `{"sequence":"ONE"}`, mode: "no-gpu", fails: "found no GPU on this server"},
		"large":     {settings: `{"sequence":"LARGE"}`, fails: "The GPU ran out of memory"},
	})
}

// TestPredictorsSearchByThemselves runs all four predictors with a small database, and
// requests the same alignments from the alignment server.
func TestPredictorsSearchByThemselves(t *testing.T) {
	t.Parallel()
	folder := databasesOf(t)
	s, _ := withStandIns(t, serverOptions{config: fmt.Sprintf("msa = %q\n[msa]\ncores = 1\n", folder)})
	u := s.user("lab", "ann@lab.example")
	chains := must.Read(t, filepath.Join(folder, "ab.fasta"))
	ab, one := u.upload("ab.fasta", chains), u.upload("one.fasta", chains[:strings.Index(chains, ">chain B")])
	for _, typ := range []string{"boltz", "chai-1", "alphafold3"} {
		u.submit(typ, typ, `{"proteins":"`+ab+`","msa":"search"}`)
	}
	u.submit("colabfold", "colabfold", `{"sequence":"`+ab+`","msa":"search","models":1}`)
	u.submit("monomer", "colabfold", `{"sequence":"`+one+`","msa":"search","models":1}`)
	search := u.job("boltz").Inputs[1].Job
	for _, typ := range []string{"boltz", "chai-1", "alphafold3"} {
		all := u.completed(typ).Inputs
		if len(all) != 3 || all[1].Setting != "alignments" || all[1].Job != search || all[2].Path != "predictors/002.a3m" {
			t.Errorf("%s read %+v", typ, all)
		}
	}
	if log := string(u.result("boltz", "log.txt")); strings.Contains(log, "empty MSA") {
		t.Errorf("boltz got no alignment: %s", log)
	}
	must.Contain(t, "settings of the search", string(u.job(search).Settings), `"cores":1`)
	for name, rows := range map[string]string{"colabfold": "#120,90\t2,1\n", "monomer": "#120\t1\n"} {
		read := u.completed(name).Inputs[1]
		if read.Setting != "alignment" || read.Path != "complex.a3m" || read.Job == search {
			t.Errorf("%s read %+v", name, read)
		}
		if made := string(u.result(read.Job, "complex.a3m")); !strings.HasPrefix(made, rows) {
			t.Errorf("%s read an alignment that begins with %.20q", name, made)
		}
	}
	key := func(r *http.Request) { r.Header.Set("X-API-Key", u.key) }
	if r := s.aligned(s.msa(key), "ticket/msa", chains, "env"); !strings.HasPrefix(r.Ticket, search+"-") || len(r.Statuses) != 1 {
		t.Errorf("the ticket of an equal query is %s after %v, want the job %s", r.Ticket, r.Statuses, search)
	}
}
