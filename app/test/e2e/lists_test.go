package e2e

import (
	"strings"
	"testing"
)

// superposeFile is an algorithm that takes a list of files and prints their names and
// first words.
const superposeFile = `format = 1
type = "superpose"
version = "1"
command = ["sh", "-c", '''
cd "$1"; shift
for f; do basename "$f"; sed -n "s/>//p" "$f"; done > names.txt
cat "$@" > all.fasta''', "sh", "{out}", { each = "files.structures", args = ["{item}"] }]

[[parameters]]
name = "structures"
file = [".fasta"]
type = "array"
minItems = 1
maxItems = 3
content = "protein-sequences"
required = true
`

func TestSettingIsAListOfFiles(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	b := u.upload("b $(id).fasta", ">b\nMEEPQ\n")
	u.upload("bad.fasta", ">bad\n123\n")
	u.upload("B_._id_.fasta", ">b2\nMKV\n")

	for settings, want := range map[string]string{
		`["inputs/b $(id).fasta","inputs/none.fasta"]`: `body.settings.structures.1: there is no completed upload`,
		`["inputs/b $(id).fasta","inputs/bad.fasta"]`:  `body.settings.structures.1: record 1 (bad), line 2, letter 1: "1" is not a valid amino acid`,
		`["a.fasta","b.fasta","c.fasta","d.fasta"]`:    `body.settings.structures: must have at most 3`,
		`[]`:                 `body.settings.structures: must have at least 1`,
		`"inputs/bad.fasta"`: `body.settings.structures: must be a list`,
		`["inputs/b $(id).fasta",{"fileId":"x"}]`:            `body.settings.structures.1: must be text`,
		`["inputs/b $(id).fasta","job:nothing/names.fasta"]`: `body.settings.structures.1: there is no job`,
	} {
		got := u.do("POST", "/submit-job", `{"jobName":"a","type":"superpose","settings":{"structures":`+settings+`}}`).want(422).details()
		if len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}

	u.submit("first", "superpose", `{"structures":["inputs/b $(id).fasta","inputs/B_._id_.fasta","`+b+`"]}`)
	u.submit("next", "superpose", `{"structures":["job:first/all.fasta","inputs/B_._id_.fasta"]}`)
	u.do("POST", "/submit-batch", `{"batchName":"fan","type":"superpose","fanOut":{"each":{"structures":"folder:inputs/[bB][ _]*"}}}`).want(200)
	if r := u.finished("next"); r.Status != "COMPLETED" || len(r.Inputs) != 2 || r.Inputs[1].Filename != "B_._id_.fasta" || r.Inputs[0].SHA256 == "" {
		t.Fatalf("%+v", r)
	}
	for job, want := range map[string]string{
		"first": "b___id_.fasta\nb\nB_._id_.fasta\nb2\nb___id_-2.fasta\nb\n",
		"next":  "all.fasta\nb\nb2\nb\nB_._id_.fasta\nb2\n",
	} {
		u.wantResult(job, "names.txt", want)
	}
	if r := u.finished("fan"); r.Status != "COMPLETED" || r.SubjobCounts["COMPLETED"] != 2 {
		t.Errorf("a batch of files: %+v", r)
	}
}
