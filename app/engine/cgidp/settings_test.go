package cgidp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/engine/input"
	"molrun/app/engine/md"
	"molrun/app/engine/run"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

const hst5 = "DSHAKRHHGYKRKFHEKHHSHRGY"

func TestParseFillsDefaults(t *testing.T) {
	s, faults := Parse([]byte(`{"sequences":["`+hst5+`","`+strings.Repeat("ES", 50)+`"],"names":null,"pH":null}`), nil)
	if faults != nil {
		t.Fatal(faults)
	}
	want := &Settings{
		Sequences: []Sequence{
			{Name: "seq1", Residues: hst5, Steps: 500_000, FrameEvery: 1000},
			{Name: "seq2", Residues: strings.Repeat("ES", 50), Steps: 2_000_000, FrameEvery: 2000},
		},
		Conditions: md.Conditions{Temperature: 298, PH: 7, IonicStrength: 0.15, Friction: 0.01, ChargedTermini: true},
		Cores:      1, Equilibration: 0.1, Replicas: 1, Seed: 1, SampleEvery: 200,
	}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(Settings{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseAcceptsAllSettings(t *testing.T) {
	s, faults := Parse([]byte(`{"fasta":"upload:x","names":["a","B.2-c_d"],"cores":64,"temperature_K":293,"pH":7.5,
		"ionic_strength_M":0.2,"steps":1e6,"equilibration":0,"replicas":64,"seed":9007199254740991,"frame_every":500,
		"sample_every":10,"friction_per_ps":1,"charged_termini":false}`), []byte(">x\nacdef\n>y\nGHIKL*\n"))
	if faults != nil {
		t.Fatal(faults)
	}
	want := &Settings{
		Sequences: []Sequence{
			{Name: "a", Residues: "ACDEF", Steps: 1e6, FrameEvery: 500},
			{Name: "B.2-c_d", Residues: "GHIKL", Steps: 1e6, FrameEvery: 500},
		},
		Conditions: md.Conditions{Temperature: 293, PH: 7.5, IonicStrength: 0.2, Friction: 1},
		Cores:      64, Replicas: 64, Seed: 1<<53 - 1, SampleEvery: 10, fasta: "upload:x",
	}
	for i := range s.Sequences {
		s.Sequences[i].Warnings = nil
	}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(Settings{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseReadsSequencesFromText(t *testing.T) {
	for settings, names := range map[string]string{
		`{"sequences":"ACDEFG"}`:                             "[seq1]",
		`{"sequences":">a\nACDEFG\n>b\nGHIKLM"}`:             "[a b]",
		`{"sequences":[">Hst5 human\nACDEFG","GHIKLM"]}`:     "[Hst5 seq2]",
		`{"sequences":"ACDEFG","names":["mine"]}`:            "[mine]",
		`{"sequences":" a c d\te f g * \n"}`:                 "[seq1]",
		`{"sequences":[">a\nACDEFG","GHIKLM"],"seed":0}`:     "[a seq2]",
		`{"fasta":"file"}`:                                   "[]",
		`{"fasta":"file","names":["given","before","file"]}`: "[]",
	} {
		s, faults := Parse([]byte(settings), nil)
		if faults != nil {
			t.Errorf("%s: %v", settings, faults)
			continue
		}
		got := []string{}
		for _, q := range s.Sequences {
			got = append(got, q.Name)
		}
		if fmt.Sprint(got) != names {
			t.Errorf("%s: names %v, want %s", settings, got, names)
		}
	}
}

// rules has one case for each validation error. All other settings of a case are valid.
var rules = []struct {
	settings string
	fasta    string
	loc      string // as printed by fmt.Sprint
	kind     string
	msg      string // part of the message
}{
	{``, "", "[]", input.JSON, "one JSON object: the input is empty"},
	{`null`, "", "[]", input.JSON, "null was given"},
	{`[]`, "", "[]", input.JSON, "cannot unmarshal array"},
	{`{} {}`, "", "[]", input.JSON, "there is text after the object"},
	{`{"sequences":`, "", "[]", input.JSON, "unexpected EOF"},

	{`{}`, "", "[sequences]", input.Missing, "give sequences"},
	{`{"sequences":"ACDEF","fasta":"x"}`, ">a\nACDEF", "[fasta]", input.Conflict, "either sequences or fasta"},
	{`{"sequences":5}`, "", "[sequences]", input.Type, "a list of sequences or one FASTA text, not the number 5"},
	{`{"sequences":["ACDEF",7]}`, "", "[sequences 1]", input.Type, "item 2 of sequences must be text, not the number 7"},
	{`{"sequences":[]}`, "", "[sequences]", input.Sequence, "holds no sequence"},
	{`{"sequences":["ACDEF",""]}`, "", "[sequences 1]", input.Sequence, `sequence "seq2" is empty`},
	{`{"sequences":["` + strings.Repeat(`ACDEF","`, 64) + `ACDEF"]}`, "", "[sequences]", input.Sequence, "holds 65 sequences; at most 64"},
	{`{"sequences":[">a\nACDEF\n>b\nACDEF"]}`, "", "[sequences 0]", input.Sequence, "holds 2 sequences; make each an item"},
	{`{"sequences":"ACDEF\nGHIKL\nMNPQR"}`, "", "[sequences]", input.Sequence, `sequences has 3 lines but no header, so these could be several sequences; put a line ">name" before each sequence`},
	{`{"fasta":"x"}`, "My proteins:\n>a\nACDEF", "[fasta]", input.Sequence, `fasta has text before the first header, "MYPROTEINS:"; add a header (a line ">name") or remove it`},
	{`{"fasta":"x"}`, "%PDF-1.4\n", "[fasta]", input.Sequence, "fasta is a PDF document; save the sequences as plain text in FASTA format"},
	{`{"fasta":"x"}`, strings.Repeat("A", input.MaxFASTA+1), "[fasta]", input.Sequence, "fasta has more than 4 MiB; give at most 64 sequences of at most 2000 residues"},
	{`{"fasta":["x"]}`, "", "[fasta]", input.Type, "must name a file, not a list"},
	{`{"fasta":"x"}`, " ", "[fasta]", input.Sequence, "holds no sequence"},
	{`{"fasta":"x"}`, ">a\nACDE1F", "[fasta]", input.Sequence, `sequence "a", position 5: digits are not amino acids; remove numbers from the sequence`},

	{`{"sequences":["ACDEFB"]}`, "", "[sequences 0]", input.Sequence, `sequence "seq1", position 6: 'B' is not an amino acid; B stands for D or N`},
	{`{"sequences":["AJDEF"]}`, "", "[sequences 0]", input.Sequence, "position 2: 'J' is not an amino acid; J stands for I or L"},
	{`{"sequences":["ACDEO"]}`, "", "[sequences 0]", input.Sequence, "use K"},
	{`{"sequences":["ACDEu"]}`, "", "[sequences 0]", input.Sequence, "position 5: 'U' is not an amino acid; U is selenocysteine, which the model does not have: use C, the nearest"},
	{`{"sequences":["XCDEF"]}`, "", "[sequences 0]", input.Sequence, "unknown residue"},
	{`{"sequences":["ZCDEF"]}`, "", "[sequences 0]", input.Sequence, "E or Q"},
	{`{"sequences":["AC-EFG"]}`, "", "[sequences 0]", input.Sequence, "gaps of the alignment"},
	{`{"sequences":["AC*EFG*"]}`, "", "[sequences 0]", input.Sequence, "reading frame"},
	{`{"sequences":["A C D>E F"]}`, "", "[sequences 0]", input.Sequence, "position 4: '>' is not an amino acid; begin each FASTA header"},
	{`{"sequences":["ACDÉF"]}`, "", "[sequences 0]", input.Sequence, "position 4: 'É' (U+00C9) is not an amino acid; retype it as one of the letters ACDEFGHIKLMNPQRSTVWY"},
	{`{"sequences":["ACD\u200bEF"]}`, "", "[sequences 0]", input.Sequence, "position 4: there is an invisible character (U+200B); retype the sequence there"},
	{`{"sequences":["ACDEF–G"]}`, "", "[sequences 0]", input.Sequence, "position 6: '–' (U+2013) is not an amino acid; remove the gaps"},
	{`{"sequences":["XCXEXFXXXGX"]}`, "", "[sequences 0]", input.Sequence, `sequence "seq1", positions 1, 3, 5, 7, 8 and 2 more: 'X' is not`},
	{`{"sequences":["1 ACD 4 EFG"]}`, "", "[sequences 0]", input.Sequence, "positions 1 and 5: digits are not amino acids"},
	{`{"sequences":["acguacguu"]}`, "", "[sequences 0]", input.Sequence, `sequence "seq1" has only A, C, G and U, so it looks like RNA; give the protein that it codes for`},
	{`{"sequences":["Asp-Ser-His-Ala-Lys"]}`, "", "[sequences 0]", input.Sequence, `sequence "seq1" is written in three-letter codes; write one letter for each residue: DSHAK`},
	{`{"sequences":["` + strings.Repeat("ALA ", 70) + `"]}`, "", "[sequences 0]", input.Sequence, strings.Repeat("A", 60) + "…"},
	{`{"sequences":["ACDE"]}`, "", "[sequences 0]", input.Sequence, "has 4 residues; it needs at least 5"},
	{`{"sequences":"` + strings.Repeat("A", 2001) + `"}`, "", "[sequences]", input.Sequence, "has 2001 residues; at most 2000"},

	{`{"sequences":"ACDEF","names":"a"}`, "", "[names]", input.Type, "must be a list of names, not text"},
	{`{"sequences":"ACDEF","names":[3]}`, "", "[names 0]", input.Type, "item 1 of names must be text"},
	{`{"sequences":"ACDEF","names":["a","b"]}`, "", "[names]", input.Name, "2 names for 1 sequence; give one name for each"},
	{`{"sequences":"ACDEF","names":["a b"]}`, "", "[names 0]", input.Name, `the name "a b" of sequence 1 has the character ' '; use only the letters A to Z`},
	{`{"fasta":"not read yet","names":["a b"]}`, "", "[names 0]", input.Name, "has the character ' '"},
	{`{"sequences":"ACDEF","names":["../a"]}`, "", "[names 0]", input.Name, "begins with a dot; begin it with a letter or digit"},
	{`{"sequences":"ACDEF","names":["Metrics.json"]}`, "", "[names 0]", input.Name, "is the name of a result file; choose another"},
	{`{"sequences":"ACDEF","names":["` + strings.Repeat("a", 65) + `"]}`, "", "[names 0]", input.Name, "is too long; use at most 64 characters"},
	{`{"sequences":["ACDEF","ACDEF"],"names":["A","a"]}`, "", "[names 1]", input.Name, `sequences 1 and 2 are both called "a"`},
	{`{"sequences":">a\nACDEF\n>a\nACDEF"}`, "", "[sequences]", input.Name, `sequences 1 and 2 are both called "a"`},

	{`{"sequences":"ACDEF","temperature":300}`, "", "[temperature]", input.Unknown, `unknown setting "temperature"; did you mean "temperature_K"?`},
	{`{"sequences":"ACDEF","PH":7}`, "", "[PH]", input.Unknown, `did you mean "pH"?`},
	{`{"sequences":"ACDEF","friction":1}`, "", "[friction]", input.Unknown, `did you mean "friction_per_ps"?`},
	{`{"sequences":"ACDEF","box":7}`, "", "[box]", input.Unknown, `unknown setting "box"; valid settings are sequences, fasta, names, cores`},
	{`{"sequences":"ACDEF","temperature_K":"300"}`, "", "[temperature_K]", input.Type, "must be a number, not text (remove the quotes?)"},
	{`{"sequences":"ACDEF","temperature_K":25}`, "", "[temperature_K]", input.Range, "temperature_K is 25; choose between 273.15 and 373 K (25 °C is 298.15 K)"},
	{`{"sequences":"ACDEF","equilibration":10}`, "", "[equilibration]", input.Range, "(10 % is 0.1)"},
	{`{"sequences":"ACDEF","steps":1e10}`, "", "[steps]", input.Range, "(use replicas for more)"},
	{`{"sequences":"ACDEF","temperature_K":373.1}`, "", "[temperature_K]", input.Range, "choose between"},
	{`{"sequences":"ACDEF","pH":1.9}`, "", "[pH]", input.Range, "between 2 and 12"},
	{`{"sequences":"ACDEF","ionic_strength_M":0}`, "", "[ionic_strength_M]", input.Range, "between 0.001 and 2 mol/L"},
	{`{"sequences":"ACDEF","ionic_strength_M":150}`, "", "[ionic_strength_M]", input.Range, "ionic_strength_M is 150; choose between 0.001 and 2 mol/L (150 mmol/L is 0.15 mol/L)"},
	{`{"sequences":"ACDEF","steps":999}`, "", "[steps]", input.Range, "between 1000 and 2000000000"},
	{`{"sequences":"ACDEF","steps":1e400}`, "", "[steps]", input.Range, "steps is 1e400"},
	{`{"sequences":"ACDEF","steps":1000.5}`, "", "[steps]", input.Type, "must be a whole number, not 1000.5"},
	{`{"sequences":"ACDEF","equilibration":0.91}`, "", "[equilibration]", input.Range, "between 0 and 0.9, the fraction"},
	{`{"sequences":"ACDEF","replicas":0}`, "", "[replicas]", input.Range, "between 1 and 64"},
	{`{"sequences":"ACDEF","cores":65}`, "", "[cores]", input.Range, "between 1 and 64"},
	{`{"sequences":"ACDEF","seed":-1}`, "", "[seed]", input.Range, "between 0 and 9007199254740991"},
	{`{"sequences":"ACDEF","seed":9007199254740993}`, "", "[seed]", input.Range, "seed is 9007199254740993"},
	{`{"sequences":"ACDEF","frame_every":99}`, "", "[frame_every]", input.Range, "between 100 and 10000000 steps"},
	{`{"sequences":"ACDEF","steps":1e7,"frame_every":100}`, "", "[frame_every]", input.Conflict, "saves 100000 frames in 10000000 steps; at most 20000 are possible: choose at least 500"},
	{`{"sequences":"ACDEF","steps":1000,"frame_every":2000}`, "", "[frame_every]", input.Conflict, "no frame would be saved; choose at most 1000"},
	{`{"sequences":["ACDEF","` + strings.Repeat("ACDEF", 10) + `"],"frame_every":6e5}`, "", "[frame_every]", input.Conflict, "no frame would be saved; choose at most 500000"},
	{`{"sequences":"ACDEF","sample_every":9}`, "", "[sample_every]", input.Range, "between 10 and 100000 steps"},
	{`{"sequences":"ACDEF","steps":1000,"sample_every":600,"equilibration":0.7}`, "", "[sample_every]", input.Conflict, "leaves no sample after equilibration in 1000 steps; choose at most 300"},
	{`{"sequences":"ACDEF","friction_per_ps":0}`, "", "[friction_per_ps]", input.Range, "between 0.001 and 10 per ps"},
	{`{"sequences":"ACDEF","charged_termini":1}`, "", "[charged_termini]", input.Type, "must be true or false, not the number 1"},
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range rules {
		var fasta []byte
		if tt.fasta != "" {
			fasta = []byte(tt.fasta)
		}
		s, faults := Parse([]byte(tt.settings), fasta)
		if s != nil || len(faults) != 1 {
			t.Errorf("%s: settings %v and faults %v, want one fault", tt.settings, s, faults)
			continue
		}
		f := faults[0]
		if fmt.Sprint(f.Loc) != tt.loc || f.Type != tt.kind || !strings.Contains(f.Msg, tt.msg) {
			t.Errorf("%s:\n got %v %s: %s\nwant %s %s: %s", tt.settings, f.Loc, f.Type, f.Msg, tt.loc, tt.kind, tt.msg)
		}
	}
}

func TestParseReturnsAllFaultsAtOnce(t *testing.T) {
	_, faults := Parse([]byte(`{"sequences":["ACD1FG","AC","GHXKL--------OUBZJ-"],"names":["a","a","."],"pH":20,"seed":"x",
		"replicas":1.5,"step":5,"charged_termini":"no","steps":10}`), nil)
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprint(f.Loc, " ", f.Type))
	}
	want := []string{
		"[step] unknown",
		"[names 1] name", "[names 2] name",
		"[sequences 0] sequence", "[sequences 1] sequence",
		"[sequences 2] sequence", "[sequences 2] sequence", "[sequences 2] sequence", "[sequences 2] sequence",
		"[sequences 2] sequence", "[sequences 2] sequence",
		"[pH] range", "[charged_termini] type", "[replicas] type", "[seed] type", "[steps] range",
	}
	must.Equal(t, "faults", got, want)
	must.Equal(t, "the rest of the characters", faults[10].Msg, `sequence "." has 2 other characters that are not amino acids`)
}

func TestWarnings(t *testing.T) {
	folded := "MKVLAAGIVGLLLAQPSWVITLLGGIAVFNMLKDAG"
	tests := []struct{ settings, want string }{
		{`{"sequences":["` + hst5 + `"]}`, ""},
		{`{"sequences":["` + hst5 + `"],"temperature_K":330}`, "for 277 to 323 K"},
		{`{"sequences":["` + hst5 + `"],"temperature_K":275}`, "for 277 to 323 K"},
		{`{"sequences":["` + hst5 + `"],"pH":4.9}`, "only histidine responds to pH"},
		{`{"sequences":["` + hst5 + `"],"ionic_strength_M":0.6}`, "above 0.5 mol/L"},
		{`{"sequences":["` + hst5 + `"],"steps":30000}`, "error of Rg of about 7 %; about 320000 steps reach 2 %"},
		{`{"sequences":["` + strings.Repeat("GSEK", 126) + `"]}`, "504 residues"},
		{`{"sequences":["` + folded + `"]}`, "typical of folded proteins"},
		{`{"sequences":["` + strings.Repeat("ACGT", 10) + `"]}`, "is this DNA?"},
	}
	for _, tt := range tests {
		s, faults := Parse([]byte(tt.settings), nil)
		if faults != nil {
			t.Errorf("%s: %v", tt.settings, faults)
			continue
		}
		got := strings.Join(s.Warnings(), "\n")
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: warnings %q, want %q", tt.settings, got, tt.want)
		}
	}
}

func TestWarningsNameSequences(t *testing.T) {
	s, faults := Parse([]byte(`{"sequences":["`+hst5+`","`+strings.Repeat("ACGT", 10)+`"],"pH":4}`), nil)
	if faults != nil {
		t.Fatal(faults)
	}
	got := s.Warnings()
	if len(got) < 2 || !strings.HasPrefix(got[0], "in this model only histidine") || !strings.HasPrefix(got[1], "seq2: ") {
		t.Errorf("warnings %q", got)
	}
}

func TestWarningsOfResultsAreInTheRecordOfTheJob(t *testing.T) {
	log := new(strings.Builder)
	m := &simulation{Run: run.Run[*replica]{Log: log}}
	about := func(name string, texts ...string) *summary { return &summary{Name: name, Warnings: texts} }
	m.logResults([]*summary{about("a", "it is short", "Rg is not converged"), about("b", "it is short")})
	if text := log.String(); !strings.HasSuffix(text, "\nmolrun:warning it is short\nmolrun:warning a: Rg is not converged\n") {
		t.Error(text)
	}
}

func TestEstimate(t *testing.T) {
	s, faults := Parse([]byte(`{"sequences":["`+hst5+`"],"steps":1e6,"replicas":3,"cores":2}`), nil)
	if faults != nil {
		t.Fatal(faults)
	}
	enginetest.Near(t, "seconds", s.Estimate().Seconds(), 1.5*0.08*33, 0.1)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"sequences":["ACDEFG"],"steps":1000}`), []byte(nil))
	f.Add([]byte(`{"fasta":"x.fasta","names":["a"],"seed":1e3}`), []byte(">q\nACDEFGHIK"))
	f.Add([]byte(`{"sequences":">a\nACDEF\n>b\nACDEG","pH":"7","frame_every":1e7}`), []byte(nil))
	f.Fuzz(func(t *testing.T, settings, fasta []byte) {
		s, faults := Parse(settings, fasta)
		if (s == nil) == (len(faults) == 0) {
			t.Fatalf("settings %v with faults %v", s, faults)
		}
		for _, fault := range faults {
			if fault.Loc == nil || fault.Msg == "" || fault.Type == "" {
				t.Errorf("fault %+v", fault)
			}
		}
		if s != nil {
			s.Warnings()
			s.Estimate()
		}
	})
}

// The settings files of the LAMMPS script in package md match the chains that its tests
// simulate.
func TestLAMMPSSettingsMatchReference(t *testing.T) {
	for _, name := range []string{"Hst5", "DSS1", "aSyn140", "ht2N4R"} {
		p := enginetest.ReferenceProtein(t, name)
		path := fmt.Sprintf("../md/testdata/lammps/settings-%d.json", len(p.Sequence))
		text, err := os.ReadFile(path)
		must.OK(t, err)
		s, faults := Parse(text, nil)
		if len(faults) > 0 {
			t.Errorf("%s: %v", path, faults)
			continue
		}
		if len(s.Sequences) != 1 || s.Sequences[0].Residues != p.Sequence || s.Sequences[0].Name != name {
			t.Errorf("%s: sequences %v, want %s alone", path, s.Sequences, name)
		}
		want := md.Conditions{
			Temperature: p.Temperature, PH: p.PH, IonicStrength: p.IonicStrength,
			Friction: input.Friction.Default, ChargedTermini: true,
		}
		if got := s.Conditions; got != want {
			t.Errorf("%s: conditions %+v, want %+v", path, got, want)
		}
	}
}
