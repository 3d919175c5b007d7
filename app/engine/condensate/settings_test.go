package condensate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/engine/input"
	"molrun/app/engine/md"
	"molrun/app/test/must"
)

func settingsOf(t testing.TB, text string) *Settings {
	t.Helper()
	s, faults := Parse([]byte(text), nil)
	if faults != nil {
		t.Fatal(faults)
	}
	return s
}

func TestDefaults(t *testing.T) {
	s := settingsOf(t, `{"components":[{"sequence":"gsgsgsgsgs","copies":100}]}`)
	want := &Settings{
		Components: []Component{{"seq1", "GSGSGSGSGS", 100}},
		Protocol:   Slab,
		Box:        md.Vec{X: 9, Y: 9, Z: 40},
		Conditions: md.Conditions{Temperature: 298, PH: 7, IonicStrength: 0.15, Friction: 0.01, ChargedTermini: true},
		Steps:      5_000_000, Equilibration: 0.25, Replicas: 1, Seed: 1, SampleEvery: 500, FrameEvery: 5000, Cores: 1,
	}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(Settings{}), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Warnings" }, cmp.Ignore())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A slab of chains like the published ones gets a box with a similar cross section, and a
// length of eight times the slab thickness.
func TestBoxIsDerived(t *testing.T) {
	protein := strings.Repeat("GS", 101)
	s := settingsOf(t, `{"components":[{"sequence":"`+protein+`","copies":100}]}`)
	if s.Box.X != s.Box.Y || s.Box.X < 14 || s.Box.X > 16 {
		t.Errorf("a slab of 202 residues is %v nm wide, published 15", s.Box)
	}
	if ratio := s.Box.Z / s.slabWidth(); ratio < 8 || ratio > 8.1 {
		t.Errorf("the box is %.2f slabs long", ratio)
	}
	for protocol, concentration := range map[string]float64{"bulk": 200, "dilute": 2} {
		s = settingsOf(t, fmt.Sprintf(`{"components":[{"sequence":%q,"copies":20}],"protocol":%q}`, protein, protocol))
		got := s.mass() / (s.Box.X * s.Box.Y * s.Box.Z) / 6.02214076e23 * 1e24
		if s.Box.X != s.Box.Y || s.Box.X != s.Box.Z || math.Abs(got/concentration-1) > 1e-3 {
			t.Errorf("%s: %v nm, %g mg/mL", protocol, s.Box, got)
		}
	}
}

const two = `{"sequence":"GSGSGSGS","copies":20}`

func TestFaults(t *testing.T) {
	tests := []struct{ settings, fasta, loc, kind, msg string }{
		{`{}`, "", "[components]", input.Missing, "give components: a list such as"},
		{`{"components":[]}`, "", "[components]", input.Missing, "give components"},
		{`{"components":[` + two + `],"fasta":"x"}`, ">a\nGSGSGS", "[fasta]", input.Conflict, "either components or fasta"},
		{`{"components":"GSGS"}`, "", "[components]", input.Type, "must be a list such as"},
		{`{"components":["GSGS"]}`, "", "[components 0]", input.Type, "component 1 must be an object such as"},
		{`{"components":[` + strings.Repeat(two+",", 8) + two + `]}`, "", "[components]", input.Sequence, "components holds 9 sequences; at most 8"},
		{`{"components":[{"copies":5}]}`, "", "[components 0 sequence]", input.Missing, "give the sequence of component 1"},
		{`{"components":[{"sequence":7,"copies":5}]}`, "", "[components 0 sequence]", input.Type, "sequence must be text"},
		{`{"components":[{"sequence":"","copies":5}]}`, "", "[components 0 sequence]", input.Sequence, "is empty"},
		{`{"components":[{"sequence":"GSXGSGS","copies":5}]}`, "", "[components 0 sequence]", input.Sequence, "position 3"},
		{`{"components":[{"sequence":">a\nGSGSG\n>b\nGSGSG","copies":5}]}`, "", "[components 0 sequence]", input.Sequence, "holds 2 sequences"},
		{`{"components":[{"sequence":"GSGSG"}]}`, "", "[components 0 copies]", input.Missing, "give copies"},
		{`{"components":[{"sequence":"GSGSG","copies":2.5}]}`, "", "[components 0 copies]", input.Type, "whole number"},
		{`{"components":[{"sequence":"GSGSG","copies":501}]}`, "", "[components 0 copies]", input.Range, "choose between 1 and 500"},
		{`{"components":[{"sequence":"GSGSG","copies":5,"nmae":"a"}]}`, "", "[components 0 nmae]", input.Unknown, `did you mean "name"?`},
		{`{"components":[{"sequence":"GSGSG","copies":5,"name":"a/b"}]}`, "", "[components 0 name]", input.Name, "has the character"},
		{`{"components":[{"sequence":"GSGSG","copies":5,"name":"a"},{"sequence":"GSGSG","copies":5,"name":"A"}]}`, "", "[components 1 name]", input.Name, `components 1 and 2 are both called "A"`},
		{`{"components":[{"sequence":"GSGSG","copies":1}]}`, "", "[components]", input.Range, "there is one chain"},
		{`{"components":[{"sequence":"GSGSG","copies":300},{"sequence":"GSGSG","copies":300}]}`, "", "[components]", input.Range, "there are 600 chains; at most 500"},
		{`{"components":[{"sequence":"` + strings.Repeat("GS", 101) + `","copies":500}]}`, "", "[components]", input.Range, "101000 residues; at most 100000"},
		{`{"components":[` + two + `],"protocol":"slap"}`, "", "[protocol]", input.Range, `unknown protocol "slap"; choose slab`},
		{`{"components":[` + two + `],"protocol":1}`, "", "[protocol]", input.Type, "must be text"},
		{`{"components":[{"sequence":"GSGSG","copies":21}],"protocol":"dilute"}`, "", "[components]", input.Range, "the protocol dilute is for at most 20"},
		{`{"components":[` + two + `],"box_nm":[15,15]}`, "", "[box_nm]", input.Type, "a list of three lengths"},
		{`{"components":[` + two + `],"box_nm":[15,8,150]}`, "", "[box_nm 1]", input.Range, "item 2 of box_nm is 8; it must be between 8.8"},
		{`{"components":[` + two + `],"box_nm":[15,15,20]}`, "", "[box_nm]", input.Conflict, "must be long along z: its third edge is 20 nm; choose at least 30 nm"},
		{`{"components":[{"sequence":"` + strings.Repeat("GS", 100) + `","copies":100}],"box_nm":[10,10,100]}`, "", "[box_nm]", input.Conflict, "leave no space for a dilute phase: the third edge is 100 nm; use at least 250 nm"},
		{`{"components":[` + two + `],"protocol":"bulk","concentration_mg_mL":900}`, "", "[concentration_mg_mL]", input.Conflict, "nm wide, and a bead would interact with two images of another"},
		{`{"components":[{"sequence":"` + strings.Repeat("GS", 100) + `","copies":100}],"protocol":"bulk","box_nm":[16,16,16]}`, "", "[box_nm]", input.Conflict, "use at least 4603 nm³"},
		{`{"components":[` + two + `],"concentration_mg_mL":20}`, "", "[concentration_mg_mL]", input.Conflict, "a result of the run"},
		{`{"components":[` + two + `],"protocol":"bulk","box_nm":[20,20,20],"concentration_mg_mL":20}`, "", "[concentration_mg_mL]", input.Conflict, "not both"},
		{`{"components":[` + two + `],"temperature_K":20}`, "", "[temperature_K]", input.Range, "20 °C is 293.15 K"},
		{`{"components":[` + two + `],"steps":2000,"sample_every":2500}`, "", "[sample_every]", input.Conflict, "leaves no sample"},
		{`{"components":[` + two + `],"steps":2000,"sample_every":100,"frame_every":250}`, "", "[frame_every]", input.Conflict, "choose 300"},
		{`{"components":[` + two + `],"steps":2000,"frame_every":3000}`, "", "[frame_every]", input.Conflict, "choose at most 2000"},
		{`{"components":[` + two + `],"steps":2000000,"frame_every":50,"sample_every":50}`, "", "[frame_every]", input.Conflict, "choose at least 100"},
		{`{"fasta":"x","copies":[2,3]}`, ">a\nGSGSG\n", "[copies]", input.Range, "copies has 2 numbers, and the FASTA file 1 sequences"},
		{`{"fasta":"x","copies":[0.5]}`, ">a\nGSGSG\n", "[copies 0]", input.Range, "item 1 of copies is 0.5"},
		{`{"fasta":"x","copies":"many"}`, ">a\nGSGSG\n", "[copies]", input.Type, "copies must be a number"},
		{`{"fasta":"x","copies":1}`, ">a\nGSGSG\n", "[copies]", input.Range, "there is one chain"},
		{`{"fasta":"x"}`, ">a\nGSGSGZ\n", "[fasta]", input.Sequence, "position 6"},
		{`{"fasta":"x"}`, strings.Repeat("A", input.MaxFASTA+1), "[fasta]", input.Sequence, "more than 4 MiB"},
	}
	for _, tt := range tests {
		var fasta []byte
		if tt.fasta != "" {
			fasta = []byte(tt.fasta)
		}
		s, faults := Parse([]byte(tt.settings), fasta)
		if s != nil || len(faults) != 1 {
			t.Errorf("%.200s: settings %v and faults %v, want one fault", tt.settings, s, faults)
			continue
		}
		f := faults[0]
		if fmt.Sprint(f.Loc) != tt.loc || f.Type != tt.kind || !strings.Contains(f.Msg, tt.msg) {
			t.Errorf("%.200s:\n got %v %s: %s\nwant %s %s: %s", tt.settings, f.Loc, f.Type, f.Msg, tt.loc, tt.kind, tt.msg)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, faults := Parse([]byte(`{"components":[{"sequence":"GSBGS","copies":0},{"sequence":"","copies":"x","name":"."}],
		"protocol":"bluk","box_nm":[1,2,3],"pH":1,"steps":1,"cores":0,"seed":-1,"replica":2}`), nil)
	got := map[string]bool{}
	for _, f := range faults {
		got[fmt.Sprint(f.Loc)] = true
	}
	for _, want := range []string{
		"[components 0 sequence]", "[components 0 copies]", "[components 1 sequence]", "[components 1 copies]", "[components 1 name]",
		"[protocol]", "[box_nm 0]", "[box_nm 1]", "[box_nm 2]", "[pH]", "[steps]", "[cores]", "[seed]", "[replica]",
	} {
		if !got[want] {
			t.Errorf("no fault at %s among %v", want, faults)
		}
	}
}

func TestFASTAHasCopies(t *testing.T) {
	fasta := []byte(">one\nGSGSGSGS\n>two\nYRYRYRYR\n")
	for copies, want := range map[string][2]int{"": {100, 100}, `,"copies":7`: {7, 7}, `,"copies":[30,4]`: {30, 4}} {
		s, faults := Parse([]byte(`{"fasta":"proteins.fasta"`+copies+`}`), fasta)
		if faults != nil {
			t.Fatal(faults)
		}
		if s.Components[0] != (Component{"one", "GSGSGSGS", want[0]}) || s.Components[1] != (Component{"two", "YRYRYRYR", want[1]}) {
			t.Errorf("%q: %v", copies, s.Components)
		}
	}
	// Without the content of the FASTA file, the other settings are checked, and Run
	// fails.
	s, faults := Parse([]byte(`{"fasta":"proteins.fasta","copies":5}`), nil)
	if faults != nil {
		t.Fatal(faults)
	}
	must.Fail(t, "without the file", Run(t.Context(), s, t.TempDir(), nil), "proteins.fasta")
}

func TestWarnings(t *testing.T) {
	for settings, want := range map[string]string{
		`"components":[` + two + `]`: "slab thinner than its interfaces: ",
		`"components":[{"sequence":"` + strings.Repeat("GS", 200) + `","copies":40}],"box_nm":[12,12,200]`: "might interact with their own images; edges of 21.5 nm are safe",
		`"components":[` + two + `],"temperature_K":350`:                                                   "277 to 323 K",
		`"components":[` + two + `],"steps":100000`:                                                        "the run is short",
		`"components":[{"sequence":"LLLLVVVVIIIIFFFFLLLLVVVVIIIIFFFF","copies":4}]`:                        "typical of folded proteins",
	} {
		s := settingsOf(t, "{"+settings+"}")
		must.Contain(t, settings, strings.Join(s.Warnings, "\n"), want)
	}
	// The algorithm file warns at the same limit, 9.5 nm at 3.2 residues per nm³.
	for copies, want := range map[int]bool{205: true, 206: false} {
		s := settingsOf(t, fmt.Sprintf(`{"components":[{"sequence":"GSYQGSYQGSYQ","copies":%d}],"box_nm":[9,9,80]}`, copies))
		must.Equal(t, fmt.Sprintf("%d copies: too thin", copies), strings.Contains(strings.Join(s.Warnings, "\n"), "slab thinner than its interfaces"), want)
	}
	s := settingsOf(t, `{"components":[{"sequence":"`+strings.Repeat("GSYR", 20)+`","copies":100}],"steps":1e7}`)
	if len(s.Warnings) > 0 {
		t.Errorf("warnings about an ordinary run: %q", s.Warnings)
	}
}
