package cgidp

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var compareRecords = cmp.AllowUnexported(record{})

func headed(id, letters string, lines ...int) record { return record{id, letters, lines, true} }

func bare(letters string, lines ...int) record { return record{"", letters, lines, false} }

func TestParseFASTA(t *testing.T) {
	tests := []struct {
		name, text string
		want       []record
	}{
		{"bare sequence", "dshak RHH\n GYK*\n", []record{bare("DSHAKRHHGYK", 8, 3)}},
		{"two records", ">a first\nACD\nEFG\n\n>b\nHIK\n", []record{headed("a", "ACDEFG", 3, 3), headed("b", "HIK", 3)}},
		{"ends of lines", "\ufeff>a\r\nAC\r\nDE\r>b\rFG", []record{headed("a", "ACDE", 2, 2), headed("b", "FG", 2)}},
		{"no final newline", ">a\nACDEF", []record{headed("a", "ACDEF", 5)}},
		{"database header", ">sp|P37840|SYUA_HUMAN Alpha-synuclein\nMDVF", []record{headed("sp_P37840_SYUA_HUMAN", "MDVF", 4)}},
		{"header without name", ">\nMDVF", []record{headed("", "MDVF", 4)}},
		{"header without sequence", ">a\n>b\nMDVF", []record{headed("a", ""), headed("b", "MDVF", 4)}},
		{"sequence before a header", "MDVF\n>b\nACD", []record{bare("MDVF", 4), headed("b", "ACD", 3)}},
		{"comment", "; old style\n>a\nACD", []record{headed("a", "ACD", 3)}},
		{"one stop of two", ">a\nACD**", []record{headed("a", "ACD*", 4)}},
		{"long name", ">" + strings.Repeat("n", 70) + "\nACD", []record{headed(strings.Repeat("n", 64), "ACD", 3)}},
		{"odd characters", ">naïve/../x\nACD", []record{headed("na_ve_.._x", "ACD", 3)}},
		{"letters that are not plain keep their case", ">a\nacé", []record{headed("a", "ACé", 4)}},
		{"nothing", " \n\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parseFASTA([]byte(tt.text))
			if diff := cmp.Diff(tt.want, got, compareRecords); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSeveralLinesWithoutAHeader(t *testing.T) {
	wide := strings.Repeat("ACDEFGHIKL", 6)
	for text, want := range map[string]bool{
		"ACDEFG":                       false,
		wide + "\n" + wide + "\nACDEF": false, // one sequence, broken at 60
		wide + "\n" + wide + "\n" + wide + "ACDEF": true,
		wide + "\nACDEF\n" + wide:                  true,
		"ACDEFGHIK\nLMNPQRSTV\nWYACDEFGH":          true, // a library of peptides
		">a\nACDEF\nACDEFG\nACD":                   false,
	} {
		if got := parseFASTA([]byte(text))[0].severalLines(); got != want {
			t.Errorf("%q: several is %t", text, got)
		}
	}
}

func TestPlainText(t *testing.T) {
	tests := []struct{ name, text, want, instead string }{
		{"plain", ">a\nACD", ">a\nACD", ""},
		{"little-endian UTF-16", "\xff\xfe>\x00a\x00\n\x00A\x00\xe9\x00", ">a\nAé", ""},
		{"big-endian UTF-16", "\xfe\xff\x00>\x00a\x00\n\x00A", ">a\nA", ""},
		{"UTF-16 cut short", "\xff\xfeA\x00C", "A", ""},
		{"UTF-16 that does not say so", ">\x00a\x00", "", "not plain text (it holds NUL bytes)"},
		{"PDF", "%PDF-1.7\n", "", "a PDF document"},
		{"Word", "PK\x03\x04\x14\x00", "", "a Word document or a zip archive"},
		{"PDB", "HEADER    VIRAL\nATOM      1  N", "", "a PDB file"},
		{"sequence that begins like PDB", "HEADER ACD", "HEADER ACD", ""},
		{"web page", "\ufeff \n<!DOCTYPE html>", "", "a web page or XML"},
	}
	for _, tt := range tests {
		plain, instead := plainText([]byte(tt.text))
		if string(plain) != tt.want || instead != tt.instead {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.name, plain, instead, tt.want, tt.instead)
		}
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
		second := parseFASTA([]byte(again.String()))
		for k := range second {
			second[k].letters = strings.Replace(second[k].letters, "A", "", 1)
		}
		for _, records := range [][]record{first, second} {
			for k := range records {
				records[k].lines, records[k].headed = nil, true
			}
		}
		if diff := cmp.Diff(first, second, compareRecords); diff != "" {
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
