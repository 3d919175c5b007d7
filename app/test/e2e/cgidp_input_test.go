package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// badFiles are uploaded for the settings below. A function builds them when needed:
// the test binary also runs as other processes, which do not need them.
func badFiles() map[string]string {
	return map[string]string{
		"empty.fasta":    "",
		"blank.fa":       "\n \r\n",
		"header.fasta":   ">lonely\n",
		"faults.fasta":   ">a\nACDEFX\n>b\n\n>a\nACDEFGH\n",
		"names.faa":      ">.x\nACDEFG\n>log\nACDEFG\n",
		"title.fasta":    "My proteins\n>a\nACDEFG\n",
		"peptides.txt":   "ACDEFGH\nIKLMNPQ\n",
		"report.fasta":   "%PDF-1.4\n%\xe2\xe3\n1 0 obj",
		"memory.fasta":   "\x00\x01\x02ACDEF",
		"windows.fasta":  "\ufeff>a\r\nACDEFG\r\n>b\r\nACDEFJ\r\n",
		"notepad.txt":    "\xff\xfe>\x00a\x00\n\x00A\x00C\x00D\x00E\x00F\x00X\x00",
		"latin1.fasta":   ">\xe9t\xe9\nACD\xe9FG\n",
		"mrna.fasta":     ">m\nAUGGCUUUUAAA\n",
		"many.fasta":     strings.Repeat(">a\nACDEFG\n", 65),
		"genome.fasta":   ">chr1\n" + strings.Repeat("ACGT", 1<<20),
		"sequences.csv":  "a,ACDEFG\n",
		"alignment.fa":   ">a\nAC--DEFG\n>b\nACW.DEFG\n",
		"long.fasta":     ">long\n" + strings.Repeat("GS", 1001) + "\n",
		"numbered.fasta": ">n\n    1 ACDEF GHIKL\n   11 MNPQR\n",
	}
}

// badSettings has the kinds of mistakes that users make. All faults are reported at
// once, each with its path in the settings and a sentence that says what to do.
var badSettings = []struct {
	settings string
	faults   []string // path and message
}{
	// Sources of the sequences.
	{`{}`, []string{"sequences: give sequences: amino acids in one-letter code, or a FASTA file as fasta"}},
	{`{"sequences":["ACDEFG"],"fasta":"inputs/many.fasta"}`, []string{"fasta: give either sequences or fasta, not both"}},
	{`{"sequences":5}`, []string{"sequences: sequences must be a list of sequences or one FASTA text, not the number 5"}},
	{`{"sequences":{"a":"ACDEFG"}}`, []string{"sequences: sequences must be a list of sequences or one FASTA text, not an object"}},
	{`{"sequences":["ACDEFG",7,null]}`, []string{"sequences.1: item 2 of sequences must be text, not the number 7", "sequences.2: item 3 of sequences must be text, not null"}},
	{`{"sequences":[]}`, []string{"sequences: sequences holds no sequence; give at least one"}},
	{`{"sequences":" \n"}`, []string{"sequences: sequences holds no sequence; give at least one"}},
	{
		`{"sequences":["` + strings.Repeat(`ACDEFG","`, 64) + `ACDEFG"]}`,
		[]string{"sequences: sequences holds 65 sequences; at most 64 can be simulated in one job: make several jobs"},
	},
	{`{"sequences":[">a\nACDEFG\n>b\nACDEFG"]}`, []string{"sequences.0: item 1 of sequences holds 2 sequences; make each an item of its own"}},
	{
		`{"sequences":"ACDEFG\nGHIKLM"}`,
		[]string{`sequences: sequences has 2 lines but no header, so these may be several sequences; write a line ">name" above each sequence`},
	},

	// Letters.
	{`{"sequences":["ACDEFB"]}`, []string{`sequences.0: sequence "seq1", position 6: 'B' is not an amino acid; B stands for D or N: choose one`}},
	{`{"sequences":["AJDEFG"]}`, []string{`sequences.0: sequence "seq1", position 2: 'J' is not an amino acid; J stands for I or L: choose one`}},
	{
		`{"sequences":["ACDEFO"],"names":["Mtb"]}`,
		[]string{`sequences.0: sequence "Mtb", position 6: 'O' is not an amino acid; O is pyrrolysine, which the model does not have: use K, the nearest`},
	},
	{
		`{"sequences":["acdefu"]}`,
		[]string{`sequences.0: sequence "seq1", position 6: 'U' is not an amino acid; U is selenocysteine, which the model does not have: use C, the nearest`},
	},
	{
		`{"sequences":["XXCXEXFGX"]}`,
		[]string{`sequences.0: sequence "seq1", positions 1, 2, 4, 6 and 9: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`},
	},
	{`{"sequences":["ZCDEFG"]}`, []string{`sequences.0: sequence "seq1", position 1: 'Z' is not an amino acid; Z stands for E or Q: choose one`}},
	{`{"sequences":["ACDE-FG"]}`, []string{`sequences.0: sequence "seq1", position 5: '-' is not an amino acid; remove the gaps of the alignment`}},
	{`{"sequences":["ACDE.FG"]}`, []string{`sequences.0: sequence "seq1", position 5: '.' is not an amino acid; remove the gaps of the alignment`}},
	{
		`{"sequences":["ACDE*FG*"]}`,
		[]string{`sequences.0: sequence "seq1", position 5: '*' is not an amino acid; it marks a stop: check the reading frame, or cut the sequence there`},
	},
	{`{"sequences":["1 ACDEF 6 GHIKL"]}`, []string{`sequences.0: sequence "seq1", positions 1 and 7: digits are not amino acids; remove numbers from the sequence`}},
	{
		`{"sequences":["ACDЕFG"]}`, // Cyrillic
		[]string{`sequences.0: sequence "seq1", position 4: 'Е' (U+0415) is not an amino acid; type it anew as one of the plain letters ACDEFGHIKLMNPQRSTVWY`},
	},
	{
		`{"sequences":["ACD\u200bEFG"]}`,
		[]string{`sequences.0: sequence "seq1", position 4: there is an invisible character (U+200B); type the sequence anew there, or copy it as plain text`},
	},
	{`{"sequences":["ACDE/FG"]}`, []string{`sequences.0: sequence "seq1", position 5: '/' is not an amino acid; use the letters ACDEFGHIKLMNPQRSTVWY`}},
	{
		`{"sequences":["ACGUUGCAUU"]}`,
		[]string{`sequences.0: sequence "seq1" has only A, C, G and U, so it looks like RNA; give the protein that it codes for`},
	},
	{
		`{"sequences":["Asp-Ser-His-Ala-Lys-Arg"]}`,
		[]string{`sequences.0: sequence "seq1" is written in three-letter codes; write one letter for each residue: DSHAKR`},
	},
	{
		`{"sequences":["ALA GLY SER ALA GLY SER"]}`,
		[]string{`sequences.0: sequence "seq1" is written in three-letter codes; write one letter for each residue: AGSAGS`},
	},

	// Lengths.
	{`{"sequences":["ACDEFG",""]}`, []string{`sequences.1: sequence "seq2" is empty; give it 5 to 2000 residues, or remove it`}},
	{`{"sequences":["ACDE"]}`, []string{`sequences.0: sequence "seq1" has 4 residues; it needs at least 5`}},
	{
		`{"sequences":["` + strings.Repeat("GS", 1001) + `"]}`,
		[]string{`sequences.0: sequence "seq1" has 2002 residues; at most 2000 can be simulated: give its disordered regions as sequences of their own`},
	},

	// Names.
	{`{"sequences":["ACDEFG"],"names":["a","b"]}`, []string{"names: there are 2 names for 1 sequence; give one name for each"}},
	{`{"sequences":["ACDEFG","ACDEFG"],"names":["a"]}`, []string{"names: there is 1 name for 2 sequences; give one name for each"}},
	{`{"sequences":["ACDEFG","ACDEFG"],"names":["a","a"]}`, []string{`names.1: sequences 1 and 2 are both called "a"; give them different names`}},
	{
		`{"sequences":["ACDEFG","ACDEFG"],"names":["a","A"]}`,
		[]string{`names.1: sequences 1 and 2 are both called "A"; give them different names`},
	},
	{`{"sequences":["ACDEFG"],"names":["a b"]}`, []string{`names.0: the name "a b" of sequence 1 has the character ' '; use only the letters A to Z, digits, '_', '.' and '-'`}},
	{`{"sequences":["ACDEFG"],"names":[".a"]}`, []string{`names.0: the name ".a" of sequence 1 begins with a dot; begin it with a letter or digit`}},
	{`{"sequences":["ACDEFG"],"names":["metrics.json"]}`, []string{`names.0: the name "metrics.json" of sequence 1 is that of a result file; choose another`}},
	{`{"sequences":["ACDEFG"],"names":"a"}`, []string{"names: names must be a list of names, not text (remove the quotes?)"}},

	// Numbers, some in the wrong units.
	{`{"sequences":["ACDEFG"],"temperature":25}`, []string{`temperature: there is no setting "temperature"; did you mean "temperature_K"?`}},
	{`{"sequences":["ACDEFG"],"temperature_K":25}`, []string{"temperature_K: temperature_K is 25; choose between 273.15 and 373 K (25 °C is 298.15 K)"}},
	{`{"sequences":["ACDEFG"],"ionic_strength_M":150}`, []string{"ionic_strength_M: ionic_strength_M is 150; choose between 0.001 and 2 mol/L (150 mmol/L is 0.15 mol/L)"}},
	{`{"sequences":["ACDEFG"],"pH":14}`, []string{"pH: pH is 14; choose between 2 and 12"}},
	{`{"sequences":["ACDEFG"],"pH":"7.4"}`, []string{"pH: pH must be a number, not text (remove the quotes?)"}},
	{`{"sequences":["ACDEFG"],"equilibration":10}`, []string{"equilibration: equilibration is 10; choose between 0 and 0.9, the fraction of the steps to discard (10 % is 0.1)"}},
	{`{"sequences":["ACDEFG"],"steps":100}`, []string{"steps: steps is 100; choose between 1000 and 2000000000"}},
	{`{"sequences":["ACDEFG"],"steps":3e9}`, []string{"steps: steps is 3000000000; choose between 1000 and 2000000000 (use replicas for more)"}},
	{`{"sequences":["ACDEFG"],"steps":1000.5}`, []string{"steps: steps must be a whole number, not 1000.5"}},
	{`{"sequences":["ACDEFG"],"replicas":0}`, []string{"replicas: replicas is 0; choose between 1 and 64"}},
	{`{"sequences":["ACDEFG"],"seed":9007199254740992}`, []string{"seed: seed is 9007199254740992; choose between 0 and 9007199254740991"}},
	{`{"sequences":["ACDEFG"],"friction_per_ps":0}`, []string{"friction_per_ps: friction_per_ps is 0; choose between 0.001 and 10 per ps"}},
	{`{"sequences":["ACDEFG"],"charged_termini":"yes"}`, []string{"charged_termini: charged_termini must be true or false, not text (remove the quotes?)"}},
	{`{"sequences":["ACDEFG"],"cores":3}`, []string{"cores: the job would need more than this server has: 3 CPUs of 2; ask for less"}},

	// Conflicts between settings.
	{
		`{"sequences":["ACDEFG"],"steps":1000,"sample_every":5000}`,
		[]string{"sample_every: sample_every of 5000 leaves no sample after equilibration in 1000 steps; choose at most 900"},
	},
	{
		`{"sequences":["ACDEFG"],"steps":1000,"equilibration":0.9,"sample_every":700}`,
		[]string{"sample_every: sample_every of 700 leaves no sample after equilibration in 1000 steps; choose at most 100"},
	},
	{
		`{"sequences":["ACDEFG"],"steps":1000,"frame_every":2000}`,
		[]string{"frame_every: frame_every is 2000, but the run has 1000 steps: no frame would be saved; choose at most 1000"},
	},
	{
		`{"sequences":["ACDEFG"],"steps":1e8,"frame_every":100}`,
		[]string{"frame_every: frame_every of 100 saves 1000000 frames in 100000000 steps; at most 20000 are possible: choose at least 5000"},
	},

	// Files.
	{`{"fasta":"inputs/empty.fasta"}`, []string{"fasta: fasta holds no sequence; give at least one"}},
	{`{"fasta":"inputs/blank.fa"}`, []string{"fasta: fasta holds no sequence; give at least one"}},
	{`{"fasta":"inputs/header.fasta"}`, []string{`fasta: sequence "lonely" is empty; give it 5 to 2000 residues, or remove it`}},
	{`{"fasta":"inputs/faults.fasta"}`, []string{
		`fasta: sequence "a", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
		`fasta: sequence "b" is empty; give it 5 to 2000 residues, or remove it`,
		`fasta: sequences 1 and 3 are both called "a"; give them different names`,
	}},
	{`{"fasta":"inputs/names.faa"}`, []string{
		`fasta: the name ".x" of sequence 1 begins with a dot; begin it with a letter or digit`,
		`fasta: the name "log" of sequence 2 is that of a result file; choose another`,
	}},
	{`{"fasta":"inputs/title.fasta"}`, []string{
		`fasta: fasta has text before the first header, "MYPROTEINS"; give it a header (a line ">name") or remove it`,
	}},
	{`{"fasta":"inputs/peptides.txt"}`, []string{
		`fasta: fasta has 2 lines but no header, so these may be several sequences; write a line ">name" above each sequence`,
	}},
	{`{"fasta":"inputs/report.fasta"}`, []string{
		`fasta: fasta is a PDF document; save the sequences as plain text in FASTA format: a line ">name" above the letters of each`,
	}},
	{`{"fasta":"inputs/memory.fasta"}`, []string{
		`fasta: fasta is not plain text (it holds NUL bytes); save the sequences as plain text in FASTA format: a line ">name" above the letters of each`,
	}},
	{`{"fasta":"inputs/windows.fasta"}`, []string{`fasta: sequence "b", position 6: 'J' is not an amino acid; J stands for I or L: choose one`}},
	{`{"fasta":"inputs/notepad.txt"}`, []string{
		`fasta: sequence "a", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
	}},
	{`{"fasta":"inputs/latin1.fasta"}`, []string{
		`fasta: sequence "_t_", position 4: '�' (U+FFFD) is not an amino acid; the text is not UTF-8 there: type it anew, or save the file as UTF-8`,
	}},
	{`{"fasta":"inputs/mrna.fasta"}`, []string{`fasta: sequence "m" has only A, C, G and U, so it looks like RNA; give the protein that it codes for`}},
	{`{"fasta":"inputs/many.fasta"}`, []string{"fasta: fasta holds 65 sequences; at most 64 can be simulated in one job: make several jobs"}},
	{`{"fasta":"inputs/alignment.fa"}`, []string{
		`fasta: sequence "a", positions 3 and 4: '-' is not an amino acid; remove the gaps of the alignment`,
		`fasta: sequence "b", position 4: '.' is not an amino acid; remove the gaps of the alignment`,
	}},
	{`{"fasta":"inputs/long.fasta"}`, []string{
		`fasta: sequence "long" has 2002 residues; at most 2000 can be simulated: give its disordered regions as sequences of their own`,
	}},
	{`{"fasta":"inputs/numbered.fasta"}`, []string{
		`fasta: sequence "n", positions 1, 12 and 13: digits are not amino acids; remove numbers from the sequence`,
	}},
	{`{"fasta":"inputs/genome.fasta","temperature_K":37}`, []string{
		"fasta: fasta has more than 4 MiB; give at most 64 sequences of at most 2000 residues",
		"temperature_K: temperature_K is 37; choose between 273.15 and 373 K (37 °C is 310.15 K)",
	}},
	{`{"fasta":"inputs/sequences.csv"}`, []string{
		`fasta: "sequences.csv" is not a file of the kind wanted here (.fasta, .fa, .faa, .txt)`,
	}},
	{`{"fasta":"inputs/nosuch.fasta"}`, []string{
		`fasta: there is no completed upload "inputs/nosuch.fasta"; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>`,
	}},

	// Several mistakes.
	{`{"sequences":["ACDEFX","GS","ACD-EFG"],"names":["p","P",".q"],"steps":1000,"frame_every":5000,"sample_every":5000}`, []string{
		`names.1: sequences 1 and 2 are both called "P"; give them different names`,
		`names.2: the name ".q" of sequence 3 begins with a dot; begin it with a letter or digit`,
		`sequences.0: sequence "p", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
		`sequences.1: sequence "P" has 2 residues; it needs at least 5`,
		`sequences.2: sequence ".q", position 4: '-' is not an amino acid; remove the gaps of the alignment`,
		"frame_every: frame_every is 5000, but the run has 1000 steps: no frame would be saved; choose at most 1000",
		"sample_every: sample_every of 5000 leaves no sample after equilibration in 1000 steps; choose at most 900",
	}},
	{`{"sequences":["ACDEFX"],"temperature_K":25,"pH":20}`, []string{
		`sequences.0: sequence "seq1", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
		"temperature_K: temperature_K is 25; choose between 273.15 and 373 K (25 °C is 298.15 K)",
		"pH: pH is 20; choose between 2 and 12",
	}},
	{`{"sequences":[7],"temperature_K":25,"pH":"7","sead":1,"steps":1}`, []string{
		`sead: there is no setting "sead"; did you mean "seed"?`,
		"sequences.0: item 1 of sequences must be text, not the number 7",
		"temperature_K: temperature_K is 25; choose between 273.15 and 373 K (25 °C is 298.15 K)",
		"pH: pH must be a number, not text (remove the quotes?)",
		"steps: steps is 1; choose between 1000 and 2000000000",
	}},
}

// details returns the faults of a 422 or of a validation: path and message.
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

// below puts the path of the settings before paths within them.
func below(settings string, faults []string) (placed []string) {
	for _, f := range faults {
		if !strings.HasPrefix(f, ":") {
			f = "." + f
		}
		placed = append(placed, settings+f)
	}
	return placed
}

// TestBadInputIsRefusedInPlainWords submits all bad settings as one batch,
// which takes far fewer processes that check them, and every fourth as a job.
func TestBadInputIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{config: "[runner]\ncpus = 2\n"}).user("lab", "ann@lab.example")
	ids := map[string]string{}
	for name, text := range badFiles() {
		ids[name] = u.upload(name, text)
	}
	var rows, want []string
	for i, tt := range badSettings {
		rows = append(rows, tt.settings)
		want = append(want, below(fmt.Sprintf("body.settings.%d", i), tt.faults)...)
	}
	if diff := cmp.Diff(want, u.do("POST", "/submit-batch", batchBody("bad", "cg-idp", rows...)).want(422).details()); diff != "" {
		t.Errorf("submitting all -want +got:\n%s", diff)
	}
	for i := 0; i < len(badSettings); i += 4 {
		body := fmt.Sprintf(`{"jobName":"bad","type":"cg-idp","settings":%s}`, badSettings[i].settings)
		want := below("body.settings", badSettings[i].faults)
		if diff := cmp.Diff(want, u.do("POST", "/submit-job", body).want(422).details()); diff != "" {
			t.Errorf("submitting %.200s -want +got:\n%s", badSettings[i].settings, diff)
		}
		validation := u.do("POST", "/validate-job", body).want(200)
		if diff := cmp.Diff(want, validation.details()); diff != "" {
			t.Errorf("validating %.200s -want +got:\n%s", badSettings[i].settings, diff)
		}
		var verdict struct{ Valid bool }
		if validation.into(&verdict); verdict.Valid {
			t.Errorf("valid: %.200s", badSettings[i].settings)
		}
	}
	u.leftNothing(ids)
}

// leftNothing fails the test if there is a job or a pinned upload.
func (u user) leftNothing(files map[string]string) {
	u.t.Helper()
	if jobs := u.names(url.Values{"organization": {"true"}, "includeSubjobs": {"true"}}); len(jobs) > 0 {
		u.t.Errorf("refused, and yet there are jobs %q", jobs)
	}
	for _, id := range files {
		u.do("DELETE", "/files/"+id, nil).want(204)
	}
}

func TestOneBadRowRefusesABatch(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	ids := map[string]string{"faults.fasta": u.upload("faults.fasta", badFiles()["faults.fasta"])}
	body := batchBody("screen", "cg-idp",
		`{"sequences":["ACDEFG"],"steps":1000}`,
		`{"sequences":["ACDEFX"],"steps":1000}`,
		`{"sequences":["ACDEFG"],"steps":1000,"frame_every":2000}`,
		`{"fasta":"inputs/faults.fasta"}`,
	)
	want := []string{
		`body.settings.1.sequences.0: sequence "seq1", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
		"body.settings.2.frame_every: frame_every is 2000, but the run has 1000 steps: no frame would be saved; choose at most 1000",
		`body.settings.3.fasta: sequence "a", position 6: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out`,
		`body.settings.3.fasta: sequence "b" is empty; give it 5 to 2000 residues, or remove it`,
		`body.settings.3.fasta: sequences 1 and 3 are both called "a"; give them different names`,
	}
	if diff := cmp.Diff(want, u.do("POST", "/submit-batch", body).want(422).details()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	body = batchBody("screen", "cg-idp", `{"sequences":["ACDEFO"]}`, `{"sequences":["ACDEFG"],"steps":1,"pH":1}`, `{"fasta":"inputs/nosuch.fasta"}`)
	want = []string{
		`body.settings.0.sequences.0: sequence "seq1", position 6: 'O' is not an amino acid; O is pyrrolysine, which the model does not have: use K, the nearest`,
		"body.settings.1.pH: pH is 1; choose between 2 and 12",
		"body.settings.1.steps: steps is 1; choose between 1000 and 2000000000",
		`body.settings.2.fasta: there is no completed upload "inputs/nosuch.fasta"; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>`,
	}
	if diff := cmp.Diff(want, u.do("POST", "/submit-batch", body).want(422).details()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	u.leftNothing(ids)
}

// Input that only makes results doubtful is accepted, with warnings in the log.
func TestQuestionableInputIsAcceptedWithWarnings(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.upload("odd.fasta", "\xff\xfe>\x00d\x00n\x00a\x00\r\x00\n\x00"+strings.Repeat("a\x00c\x00g\x00t\x00", 5))
	u.submit("doubtful", "cg-idp", `{"fasta":"inputs/odd.fasta","steps":1000,"temperature_K":330,"pH":4,"ionic_strength_M":1}`)
	u.completed("doubtful")
	log := string(u.do("GET", "/jobs/doubtful/logs", nil).want(200).body)
	var s struct {
		Sequence string
		Warnings []string
	}
	answer{t: t, body: u.result("doubtful", "dna/summary.json")}.into(&s)
	for _, want := range []string{
		"the model was made for temperatures from 277 to 323 K", "only histidine responds to pH", "above 0.5 mol/L of salt",
		"the run is short", "is this DNA?", "Rg is not converged",
	} {
		if !strings.Contains(log, "warning: ") || !strings.Contains(log, want) {
			t.Errorf("the log does not warn that %s:\n%s", want, log)
		}
		if !strings.Contains(strings.Join(s.Warnings, "\n"), want) {
			t.Errorf("the summary does not warn that %s: %q", want, s.Warnings)
		}
	}
	if s.Sequence != strings.Repeat("ACGT", 5) {
		t.Errorf("the sequence is %s", s.Sequence)
	}
}
