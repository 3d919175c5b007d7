package e2e

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// sizedFile is an algorithm whose resources and rules depend on the content of an input
// file.
const sizedFile = `format = 1
type = "sized"
version = "1"
command = ["sh", "-c", 'echo "$2" > "$1/count.txt"; for i in 1 2 3 4; do echo ">s$i"; echo MKV; done > "$1/made.fasta"', "sh", "{out}", "{derived.count}"]

[[parameters]]
name = "query"
file = [".fasta"]
content = "protein-sequences"
required = true

[[parameters]]
name = "most"
type = "integer"
default = 100

[derived]
count = "facts.records * 10 + facts.query.longest"

[resources]
memory = "facts.records / 16"

[[rules]]
that = "facts.residues <= settings.most"
message = "must not be less than the residues of query"
`

func TestRulesUseFileMetadata(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	u.upload("two.fasta", ">a\nMEEPQ\n>b\nMKV\n")
	body := func(name, settings string) string {
		return fmt.Sprintf(`{"jobName":%q,"type":"sized","settings":%s}`, name, settings)
	}
	if got := u.do("POST", "/submit-job", body("a", `{"query":"inputs/two.fasta","most":7}`)).want(422).details(); len(got) != 1 || got[0] != "body.settings.most: must not be less than the residues of query" {
		t.Errorf("faults %q", got)
	}
	var est struct{ Slots []struct{ MemoryBytes int64 } }
	u.do("POST", "/estimate", body("a", `{"query":"inputs/two.fasta"}`)).want(200).into(&est)
	if len(est.Slots) != 1 || est.Slots[0].MemoryBytes != 2<<26 {
		t.Errorf("slots %+v, want %d bytes", est.Slots, 2<<26)
	}
	u.submit("a", "sized", `{"query":"inputs/two.fasta"}`)
	u.submit("next", "sized", `{"query":"job:a/made.fasta"}`)
	u.submit("wrong", "sized", `{"query":"job:a/made.fasta","most":11}`)
	u.completed("a")
	u.wantResult("a", "count.txt", "25\n")

	// The metadata of files that did not exist at submission becomes known when the job
	// starts.
	if r := u.finished("wrong"); r.Failure == nil || r.Failure.Code != "INPUT_INVALID" || !strings.Contains(r.Failure.Message, "most: must not be less than the residues of query") {
		t.Errorf("%+v", r.Failure)
	}
	r := u.finished("next")
	if r.Failure == nil || r.Failure.Code != "CANNOT_START" || !strings.Contains(r.Failure.Message, "1 CPU and 256.0 MiB of memory. Retry it") {
		t.Fatalf("%+v", r.Failure)
	}
	u.do("POST", "/jobs/next/retry", nil).want(200)
	u.completed("next")
	u.wantResult("next", "count.txt", "43\n")
}

// TestStructuresAreSummarized also requires that the submission check and the engine
// agree: a job that is accepted has a result.
func TestStructuresAreSummarized(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	for name, want := range map[string]string{
		"glu-ligand-mse.pdb":   "1 chain, 24 residues, 1 ligand (GLU), 1 modified residue (MSE)",
		"dimer-blank.pdb":      "2 chains, 24 + 24 residues",
		"waters-hex.pdb":       "1 chain, 24 residues, 30 waters",
		"remark.pdb":           "1 chain, 24 residues",
		"model.cif.gz":         "1 chain, 24 residues",
		"named-pdb-but-gz.pdb": "1 chain, 24 residues",
	} {
		u.upload(name, must.Read(t, "../files/testdata/"+name))
		job := strings.ReplaceAll(strings.TrimSuffix(name, ".gz"), ".", "-")
		row := fmt.Sprintf(`{"structure":"inputs/%s"}`, name)
		var est struct{ Inputs []struct{ Summary string } }
		u.do("POST", "/estimate", fmt.Sprintf(`{"batchName":"b","type":"structure-summary","settings":[%s,%s]}`, row, row)).want(200).into(&est)
		if len(est.Inputs) != 1 || est.Inputs[0].Summary != want {
			t.Errorf("%s: estimate has %+v, want %s", name, est.Inputs, want)
		}
		u.submit(job, "structure-summary", row)
		if r := u.finished(job); r.Status != "COMPLETED" || len(r.Inputs) != 1 || r.Inputs[0].Summary != want {
			t.Errorf("%s: %s, %+v, want %s", name, r.Status, r.Inputs, want)
		}
	}
	if told, _ := u.person().onTerminal("estimate", "structure-summary", "--example"); !strings.Contains(told, "\nstructure  lysozyme.pdb: 1 chain, 129 residues") {
		t.Errorf("the terminal shows no summary:\n%s", told)
	}
	one := must.Read(t, "../files/testdata/remark.pdb")
	u.upload("two.pdb", one+strings.ReplaceAll(one, " A ", " B "))
	if got := u.do("POST", "/submit-job", `{"jobName":"two","type":"structure-summary","settings":{"structure":"inputs/two.pdb"}}`).want(422).details(); len(got) != 1 || !strings.Contains(got[0], "has atoms after END in line") {
		t.Errorf("faults %q", got)
	}
}
