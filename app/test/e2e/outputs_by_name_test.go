package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// makerFile creates the requested number of poses, after waiting for a gate if one is
// given.
const makerFile = `format = 1
type = "maker"
version = "3"
command = ["sh", "-c", '''
while test -n "$3" && ! test -e "@DIR@/gates/$3"; do sleep 0.05; done
mkdir "$1/poses"; i=0
while test $i -lt $2; do i=$((i+1)); printf '>p%d\nMKV\n' $i > "$1/poses/$i.fasta"; done
printf '>r\nMEEPQ\n' > "$1/report.fasta"''', "sh", "{out}", "{settings.poses}", "{settings.gate}"]

[[parameters]]
name = "poses"
type = "integer"
minimum = 0
default = 3

[[parameters]]
name = "gate"
type = "string"
default = ""

[[outputs]]
name = "poses"
file = "poses/*.fasta"

[[outputs]]
name = "report"
file = "report.fasta"
required = true

[[outputs]]
name = "picture"
file = "*.svg"

[[outputs]]
name = "any"
file = "report.*"

[sandbox]
read = ["@DIR@/gates"]
`

// readerFile reads one file, and a list of two to four files.
const readerFile = `format = 1
type = "reader"
version = "1"
command = ["sh", "-c", 'out=$1; shift; cat "$@" > "$out/all.fasta"', "sh", "{out}", { if = "files.one", args = ["{files.one}"] }, { each = "files.many", args = ["{item}"] }]

[[parameters]]
name = "one"
file = [".fasta"]
content = "protein-sequences"
max_residues = 5

[[parameters]]
name = "many"
file = [".fasta"]
type = "array"
minItems = 2
maxItems = 4
content = "protein-sequences"
max_residues = 4
`

// oldMaker is an algorithm that declares no outputs.
const oldMaker = `format = 1
type = "old"
version = "2"
command = ["sh", "-c", 'echo ">a" > "$1/a.fasta"', "sh", "{out}"]
`

// unreadable returns the errors of validating a job that reads files.
func (u user) unreadable(settings string) string {
	u.t.Helper()
	body := `{"jobName":"x","type":"reader","settings":` + settings + `}`
	faults := strings.Join(u.do("POST", "/submit-job", body).want(422).details(), "; ")
	var est struct {
		Possible bool
		Detail   []struct{ Msg string }
	}
	if u.do("POST", "/estimate", body).want(200).into(&est); est.Possible || len(est.Detail) == 0 || !strings.Contains(faults, est.Detail[0].Msg) {
		u.t.Errorf("the estimate of %s: %+v; submitted, %s", settings, est, faults)
	}
	return faults
}

func TestReferencesNameOutputs(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.submit("dock", "maker", `{}`)
	u.submit("five", "maker", `{"poses":5}`)
	u.submit("single", "maker", `{"poses":1}`)
	u.submit("old", "old", `{}`)
	for _, name := range []string{"dock", "five", "single", "old"} {
		u.completed(name)
	}
	for settings, want := range map[string]string{
		`{"one":"job:dock/@pose"}`:                             `body.settings.one: maker 3, the algorithm of job "dock", has no output "pose"; it has poses, report, picture, any`,
		`{"one":"job:dock/@"}`:                                 `body.settings.one: the result of job "dock" has no file "@"`,
		`{"one":"job:old/@poses"}`:                             `body.settings.one: old 2, the algorithm of job "old", declares no outputs: name a file, as in job:old/<path>`,
		`{"one":"job:none/@poses"}`:                            `body.settings.one: there is no job "none"`,
		`{"one":"job:dock/@picture"}`:                          `body.settings.one: the result of job "dock" has no file for the output "picture" (*.svg)`,
		`{"one":"job:dock/@poses"}`:                            `body.settings.one: the output "poses" of job "dock" has 3 files, but this setting takes only one: name the file, as in job:dock/poses/1.fasta`,
		`{"many":["job:five/@poses"]}`:                         `body.settings.many: has 5 files, including those of outputs; the maximum is 4`,
		`{"many":["job:single/@poses"]}`:                       `body.settings.many: has 1 file, including those of outputs; it needs at least 2`,
		`{"many":["job:dock/report.fasta"]}`:                   `body.settings.many: must have at least 2`,
		`{"many":["job:dock/@poses","job:dock/@report"]}`:      `body.settings.many.1: report.fasta record 1 (r) has 5 residues; the maximum is 4`,
		`{"many":["job:dock/@poses","job:dock/report.fasta"]}`: `body.settings.many.1: record 1 (r) has 5 residues; the maximum is 4`,
	} {
		if got := u.unreadable(settings); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", settings, got, want)
		}
	}

	u.submit("reads", "reader", `{"one":"job:dock/@report","many":["job:dock/@poses","job:single/@poses"]}`)
	r := u.finished("reads")
	u.wantResult("reads", "all.fasta", ">r\nMEEPQ\n>p1\nMKV\n>p2\nMKV\n>p3\nMKV\n>p1\nMKV\n")
	var inputs []string
	for _, in := range r.Inputs {
		inputs = append(inputs, fmt.Sprintf("%s %s @%s %s %s %v", in.Setting, in.Job, in.Output, in.Path, in.Filename, len(in.SHA256) == 64))
	}
	if got, want := strings.Join(inputs, "\n"), `one dock @report report.fasta report.fasta true
many dock @poses poses/1.fasta 1.fasta true
many dock @poses poses/2.fasta 2.fasta true
many dock @poses poses/3.fasta 3.fasta true
many single @poses poses/1.fasta 1.fasta true`; got != want {
		t.Errorf("inputs\n%s\nwant\n%s", got, want)
	}

	// The result states how to run the same job again, with input files given by digest.
	var link struct{ DownloadURL string }
	u.do("POST", "/result", `{"jobName":"reads","inputs":true}`).want(200).into(&link)
	files := unzip(u.t, u.do("GET", link.DownloadURL, nil).want(200).body)
	if n := strings.Count(files["job.json"], `"sha256:`); n != 5 {
		t.Errorf("%d digests in the submission of %s", n, files["job.json"])
	}

	// A job can be deleted even though another job has read its outputs.
	u.do("DELETE", "/jobs/dock", nil).want(204)
	if got := u.unreadable(`{"one":"job:dock/@report"}`); !strings.Contains(got, `there is no job "dock"`) {
		t.Error(got)
	}
}

func TestOutputsOfJobsThatRun(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u, gate := s.user("lab", "ann@lab.example"), "go"+s.tenant
	u.submit("dock", "maker", `{"gate":"`+gate+`"}`)
	u.submit("five", "maker", `{"poses":5,"gate":"`+gate+`"}`)
	for settings, want := range map[string]string{
		`{"one":"job:dock/@pose"}`:    `body.settings.one: maker 3, the algorithm of job "dock", has no output "pose"; it has poses, report, picture, any`,
		`{"one":"job:dock/@picture"}`: `body.settings.one: "*.svg" has the wrong file type; this setting takes .fasta`,
		`{"many":["job:dock/@poses","job:dock/@poses","job:dock/@poses","job:dock/@poses","job:dock/@poses"]}`: `body.settings.many: must have at most 4`,
	} {
		if got := u.unreadable(settings); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", settings, got, want)
		}
	}
	waits := u.submit("reads", "reader", `{"one":"job:dock/@any","many":["job:dock/@poses"]}`)
	if in := waits.Inputs; len(in) != 2 || in[0].Path != "report.*" || in[1].Output != "poses" || in[1].Filename != "*.fasta" || in[1].SHA256 != "" {
		t.Errorf("%+v", in)
	}
	u.submit("few", "reader", `{"one":"job:dock/@poses"}`)
	u.submit("many", "reader", `{"many":["job:five/@poses"]}`)
	u.submit("long", "reader", `{"many":["job:dock/@poses","job:dock/@report"]}`)
	u.do("DELETE", "/jobs/dock", nil).want(409)
	s.gate("go").open(t)
	if r := u.finished("reads"); r.Status != "COMPLETED" || len(r.Inputs) != 4 || r.Inputs[0].Path != "report.fasta" || r.Inputs[3].Path != "poses/3.fasta" || r.Inputs[3].SHA256 == "" {
		t.Errorf("%+v", r)
	} else if got := string(u.result("reads", "all.fasta")); got != ">r\nMEEPQ\n>p1\nMKV\n>p2\nMKV\n>p3\nMKV\n" {
		t.Errorf("it read %q", got)
	}
	for name, want := range map[string]string{
		"few":  `INPUT_MISSING: There is no file for setting "one": the output "poses" of job "dock" has 3 files, but this setting takes only one: name the file, as in job:dock/poses/1.fasta. `,
		"many": `INPUT_INVALID: The settings are not valid for the files that other jobs have created. many: has 5 files, including those of outputs; the maximum is 4`,
		"long": `INPUT_INVALID: The settings are not valid for the files that other jobs have created. many: report.fasta record 1 (r) has 5 residues`,
	} {
		r := u.finished(name)
		if r.Failure == nil || !strings.HasPrefix(r.Failure.Code+": "+r.Failure.Message, want) {
			t.Errorf("%s: %+v, want %s", name, r.Failure, want)
		}
	}
}

func TestOutputsWithinBatches(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	pipeline := func(output string) string {
		return `{"batchName":"p","jobs":[
			{"jobName":"make","type":"maker","settings":{}},
			{"jobName":"read","type":"reader","settings":{"many":["job:make/@` + output + `"]}}]}`
	}
	if got := u.do("POST", "/submit-batch", pipeline("pose")).want(422).details(); len(got) != 1 || got[0] != `body.jobs.1.settings.many.0: maker 3, the algorithm of job "make", has no output "pose"; it has poses, report, picture, any` {
		t.Errorf("%q", got)
	}
	u.do("POST", "/submit-batch", pipeline("poses")).want(200)
	if r := u.finished("read"); r.Status != "COMPLETED" || len(r.Inputs) != 3 {
		t.Errorf("%+v", r)
	}
	u.upload("rows.csv", "one\njob:make/@report\njob:make/poses/1.fasta\n")
	u.do("POST", "/submit-batch", `{"batchName":"f","type":"reader","fanOut":{"each":{"one":"csv:inputs/rows.csv"}}}`).want(200)
	if r := u.finished("f"); r.SubjobCounts["COMPLETED"] != 2 {
		t.Errorf("%+v", r)
	}
	// An output can be fanned out into the jobs of a batch if it is a single file.
	if got := u.do("POST", "/submit-batch", `{"batchName":"g","type":"maker","fanOut":{"each":{"gate":"fasta:job:make/@poses"}}}`).want(422).details(); len(got) != 1 ||
		got[0] != `body.fanOut.each.gate: "job:make/@poses" refers to 3 files, but a batch is made from one: name the file, as in job:make/poses/1.fasta` {
		t.Errorf("%q", got)
	}
}

// TestOutputsOfOtherVersions refers to an output by a name that exists only in another
// version of the algorithm. It also refers to more files than a submission may have, with
// few references.
func TestOutputsOfOtherVersions(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{algorithms: map[string]string{"maker.toml": makerFile, "reader.toml": readerFile}})
	u := s.user("lab", "ann@lab.example")
	u.submit("dock", "maker", `{"poses":2}`)
	u.submit("many", "maker", `{"poses":1000}`)
	u.completed("dock")
	u.completed("many")
	s.algorithmFile("maker.toml", strings.NewReplacer(`name = "poses"
file`, `name = "moved"
file`, `version = "3"`, `version = "4"`).Replace(makerFile))
	s.algorithmFile("wide.toml", strings.NewReplacer("maxItems = 4", "maxItems = 1000", `type = "reader"`, `type = "wide"`, `content = "protein-sequences"`, "", "max_residues = 4", "", "max_residues = 5", "").Replace(readerFile))
	s.reload(0)
	u.submit("reads", "reader", `{"many":["job:dock/@poses"]}`)
	u.completed("reads")
	if got := u.unreadable(`{"many":["job:dock/@moved"]}`); !strings.Contains(got, `has no output "moved"`) {
		t.Error(got)
	}
	row := `{"many":["job:many/@poses"]}`
	if got := u.do("POST", "/submit-batch", batchBody("b", "wide", slices.Repeat([]string{row}, 101)...)).want(422).details(); len(got) != 1 ||
		got[0] != "body.settings.100.many.0: the settings name more than 100000 files; submit several batches" {
		t.Errorf("%.300q", got)
	}
	// All of them together are too many for one job as well.
	if got := u.do("POST", "/submit-job", `{"jobName":"j","type":"wide","settings":{"many":["job:many/@poses","job:many/@report"]}}`).want(422).details(); len(got) != 1 ||
		got[0] != "body.settings.many: has 1001 files, including those of outputs; the maximum is 1000" {
		t.Errorf("%.300q", got)
	}
}
