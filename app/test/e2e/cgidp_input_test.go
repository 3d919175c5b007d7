package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// badFiles returns the files that badSettings refers to, by name.
func badFiles() map[string]string {
	return map[string]string{
		"faults.fasta":  ">a\nACDEFX\n>b\n\n>a\nACDEFGH\n",
		"memory.fasta":  "\x00\x01\x02ACDEF",
		"notepad.txt":   "\xff\xfe>\x00a\x00\n\x00A\x00C\x00D\x00E\x00F\x00X\x00",
		"genome.fasta":  ">chr1\n" + strings.Repeat("ACGT", 1<<20),
		"sequences.csv": "a,ACDEFG\n",
	}
}

// badSettings has one example of each kind of user error; the tests of package cgidp
// cover every error. All errors are reported at once, each with its path in the settings
// and a sentence that says what to do.
var badSettings = []struct {
	settings string
	faults   []string // path and message
}{
	{`{}`, []string{"sequences: give sequences: amino acids in one-letter code, or a FASTA file as fasta"}},
	{`{"sequences":["ACDEFG",7,null]}`, []string{"sequences.1: item 2 of sequences must be text, not the number 7", "sequences.2: item 3 of sequences must be text, not null"}},
	{`{"sequences":["ACDЕFG"]}`, []string{ // the fourth letter is Cyrillic
		`sequences.0: sequence "seq1", position 4: 'Е' (U+0415) is not an amino acid; retype it as one of the letters ACDEFGHIKLMNPQRSTVWY`,
	}},
	{`{"sequences":["ACDEFG"],"temperature":25}`, []string{`temperature: unknown setting "temperature"; did you mean "temperature_K"?`}},
	{`{"sequences":["ACDEFG"],"steps":3e9}`, []string{"steps: steps is 3000000000; choose between 1000 and 2000000000 (use replicas for more)"}},
	{`{"sequences":["ACDEFG"],"cores":2}`, []string{"cores: the job would need more than this server has: 2 CPUs of 1; request less"}},
	{`{"fasta":"inputs/faults.fasta"}`, []string{
		`fasta: sequence "a", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
		`fasta: sequence "b" is empty; give it 5 to 2000 residues, or remove it`,
		`fasta: sequences 1 and 3 are both called "a"; give them different names`,
	}},
	{`{"fasta":"inputs/memory.fasta"}`, []string{
		`fasta: fasta is not plain text (it holds NUL bytes); save the sequences as plain text in FASTA format: a line ">name" above the letters of each`,
	}},
	{`{"fasta":"inputs/notepad.txt"}`, []string{
		`fasta: sequence "a", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
	}},
	{`{"fasta":"inputs/genome.fasta","temperature_K":37}`, []string{
		"fasta: fasta has more than 4 MiB; give at most 64 sequences of at most 2000 residues",
		"temperature_K: temperature_K is 37; choose between 273.15 and 373 K (37 °C is 310.15 K)",
	}},
	{`{"fasta":"inputs/sequences.csv"}`, []string{
		`fasta: "sequences.csv" has the wrong file type; this setting takes .fasta, .fa, .faa, .txt`,
	}},
	{`{"fasta":"inputs/nosuch.fasta"}`, []string{
		`fasta: there is no completed upload "inputs/nosuch.fasta"; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>`,
	}},
	{`{"sequences":["ACDEFX","GS","ACD-EFG"],"names":["p","P",".q"],"steps":1000,"frame_every":5000}`, []string{
		`names.1: sequences 1 and 2 are both called "P"; give them different names`,
		`names.2: the name ".q" of sequence 3 begins with a dot; begin it with a letter or digit`,
		`sequences.0: sequence "p", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
		`sequences.1: sequence "P" has 2 residues; it needs at least 5`,
		`sequences.2: sequence ".q", position 4: '-' is not an amino acid; remove the gaps of the alignment`,
		"frame_every: frame_every is 5000, but the run has 1000 steps: no frame would be saved; choose at most 1000",
	}},
	{`{"sequences":[7],"temperature_K":25,"pH":"7","sead":1,"steps":1}`, []string{
		`sead: unknown setting "sead"; did you mean "seed"?`,
		"sequences.0: item 1 of sequences must be text, not the number 7",
		"temperature_K: temperature_K is 25; choose between 273.15 and 373 K (25 °C is 298.15 K)",
		"pH: pH must be a number, not text (remove the quotes?)",
		"steps: steps is 1; choose between 1000 and 2000000000",
	}},
}

// details returns the errors of a 422 or of a validation, each as path and message.
func (a answer) details() (faults []string) {
	a.t.Helper()
	var e struct {
		Detail []struct {
			Loc []any
			Msg string
		}
	}
	a.into(&e)
	for _, d := range e.Detail {
		var place []string
		for _, step := range d.Loc {
			place = append(place, fmt.Sprint(step))
		}
		faults = append(faults, strings.Join(place, ".")+": "+d.Msg)
	}
	return faults
}

// below adds a prefix to each error: the path of the settings in the request.
func below(settings string, faults []string) (placed []string) {
	for _, f := range faults {
		if !strings.HasPrefix(f, ":") {
			f = "." + f
		}
		placed = append(placed, settings+f)
	}
	return placed
}

// TestBadInputIsRefusedInPlainWords submits all bad settings in one batch, since that
// takes far fewer validator processes, and every fourth as a single job.
func TestBadInputIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{config: "[runner]\ncpus = 1\n"}).user("lab", "ann@lab.example")
	ids := map[string]string{}
	for name, text := range badFiles() {
		ids[name] = u.upload(name, text)
	}
	var rows, want []string
	for i, tt := range badSettings {
		rows = append(rows, tt.settings)
		want = append(want, below(fmt.Sprintf("body.settings.%d", i), tt.faults)...)
	}
	must.Equal(t, "submitting all", u.do("POST", "/submit-batch", batchBody("bad", "cg-idp", rows...)).want(422).details(), want)
	for i := 0; i < len(badSettings); i += 4 {
		body := fmt.Sprintf(`{"jobName":"bad","type":"cg-idp","settings":%s}`, badSettings[i].settings)
		want := below("body.settings", badSettings[i].faults)
		must.Equal(t, fmt.Sprintf("submitting %.200s", badSettings[i].settings), u.do("POST", "/submit-job", body).want(422).details(), want)
		validation := u.do("POST", "/validate-job", body).want(200)
		must.Equal(t, fmt.Sprintf("validating %.200s", badSettings[i].settings), validation.details(), want)
		var verdict struct{ Valid bool }
		if validation.into(&verdict); verdict.Valid {
			t.Errorf("valid: %.200s", badSettings[i].settings)
		}
	}
	u.leftNothing(ids)
}

// leftNothing fails the test if any job was created or any upload is pinned.
func (u user) leftNothing(files map[string]string) {
	u.t.Helper()
	if jobs := u.names(url.Values{"organization": {"true"}, "includeSubjobs": {"true"}}); len(jobs) > 0 {
		u.t.Errorf("rejected, but jobs exist: %q", jobs)
	}
	for _, id := range files {
		u.do("DELETE", "/files/"+id, nil).want(204)
	}
}
