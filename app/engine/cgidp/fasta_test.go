package cgidp

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFASTA(t *testing.T) {
	tests := []struct {
		name, text string
		want       []record
	}{
		{"bare sequence", "dshak RHH\n GYK*\n", []record{{"", "DSHAKRHHGYK"}}},
		{"two records", ">a first\nACD\nEFG\n\n>b\nHIK\n", []record{{"a", "ACDEFG"}, {"b", "HIK"}}},
		{"ends of lines", "\ufeff>a\r\nAC\r\nDE\r>b\rFG", []record{{"a", "ACDE"}, {"b", "FG"}}},
		{"no final newline", ">a\nACDEF", []record{{"a", "ACDEF"}}},
		{"database header", ">sp|P37840|SYUA_HUMAN Alpha-synuclein\nMDVF", []record{{"sp_P37840_SYUA_HUMAN", "MDVF"}}},
		{"header without name", ">\nMDVF", []record{{"", "MDVF"}}},
		{"header without sequence", ">a\n>b\nMDVF", []record{{"a", ""}, {"b", "MDVF"}}},
		{"sequence before a header", "MDVF\n>b\nACD", []record{{"", "MDVF"}, {"b", "ACD"}}},
		{"comment", "; old style\n>a\nACD", []record{{"a", "ACD"}}},
		{"one stop of two", ">a\nACD**", []record{{"a", "ACD*"}}},
		{"long name", ">" + strings.Repeat("n", 70) + "\nACD", []record{{strings.Repeat("n", 64), "ACD"}}},
		{"odd characters", ">naïve/../x\nACD", []record{{"na_ve_.._x", "ACD"}}},
		{"nothing", " \n\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parseFASTA([]byte(tt.text))
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(record{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestExampleFiles(t *testing.T) {
	for file, want := range map[string]string{"hst5": "Hst5", "actr": "ACTR", "asyn": "aSyn140"} {
		text, err := os.ReadFile("testdata/" + file + ".fasta")
		if err != nil {
			t.Fatal(err)
		}
		records := parseFASTA(text)
		if sequence := referenceProtein(t, want).sequence; len(records) != 1 || records[0].letters != sequence {
			t.Errorf("%s.fasta holds %v, want %s", file, records, sequence)
		}
	}
}

// What is read can be written and read again, and never holds white space.
func FuzzParseFASTA(f *testing.F) {
	f.Add([]byte(">a b\nACD\n>c\nEF*"))
	f.Add([]byte("ACD\r\n;x\r>\n\xff*"))
	f.Add([]byte(">sp|P1|X\n\u00a0\u212a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		first := parseFASTA(text)
		var again strings.Builder
		for _, r := range first {
			if len(r.id) > maxNameLength || strings.ContainsFunc(r.id, func(c rune) bool { return c >= 128 || !isNameByte(byte(c)) }) {
				t.Errorf("id %q", r.id)
			}
			if len(strings.Fields(r.letters)) > 1 {
				t.Errorf("white space in %q", r.letters)
			}
			again.WriteString(">" + r.id + "\n\n" + guard(r.letters) + "*\n")
		}
		var second []record
		for _, r := range parseFASTA([]byte(again.String())) {
			second = append(second, record{r.id, strings.Replace(r.letters, "A", "", 1)})
		}
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("read again: %s", diff)
		}
	})
}

// guard keeps a sequence that begins with '>' or ';' from becoming a header.
func guard(letters string) string { return "A" + letters }

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
