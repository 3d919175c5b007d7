package input

import (
	"os"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

func headed(name, letters string, lines ...int) Record { return Record{name, letters, lines, true} }

func bare(letters string, lines ...int) Record { return Record{"", letters, lines, false} }

func TestParseFASTA(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Record
	}{
		{"bare sequence", "dshak RHH\n GYK*\n", []Record{bare("DSHAKRHHGYK", 8, 3)}},
		{"two records", ">a first\nACD\nEFG\n\n>b\nHIK\n", []Record{headed("a", "ACDEFG", 3, 3), headed("b", "HIK", 3)}},
		{"ends of lines", "\ufeff>a\r\nAC\r\nDE\r>b\rFG", []Record{headed("a", "ACDE", 2, 2), headed("b", "FG", 2)}},
		{"no final newline", ">a\nACDEF", []Record{headed("a", "ACDEF", 5)}},
		{"database header", ">sp|P37840|SYUA_HUMAN Alpha-synuclein\nMDVF", []Record{headed("sp_P37840_SYUA_HUMAN", "MDVF", 4)}},
		{"header without name", ">\nMDVF", []Record{headed("", "MDVF", 4)}},
		{"header without sequence", ">a\n>b\nMDVF", []Record{headed("a", ""), headed("b", "MDVF", 4)}},
		{"sequence before a header", "MDVF\n>b\nACD", []Record{bare("MDVF", 4), headed("b", "ACD", 3)}},
		{"comment", "; old style\n>a\nACD", []Record{headed("a", "ACD", 3)}},
		{"one stop of two", ">a\nACD**", []Record{headed("a", "ACD*", 4)}},
		{"long name", ">" + strings.Repeat("n", 70) + "\nACD", []Record{headed(strings.Repeat("n", 64), "ACD", 3)}},
		{"odd characters", ">naïve/../x\nACD", []Record{headed("na_ve_.._x", "ACD", 3)}},
		{"letters that are not plain keep their case", ">a\nacé", []Record{headed("a", "ACé", 4)}},
		{"nothing", " \n\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ParseFASTA([]byte(tt.text))
			must.Equal(t, "records", got, tt.want)
		})
	}
}

func TestMayBeSeveralWithoutHeader(t *testing.T) {
	wide := strings.Repeat("ACDEFGHIKL", 6)
	for text, want := range map[string]bool{
		"ACDEFG":                       false,
		wide + "\n" + wide + "\nACDEF": false, // one sequence, broken at 60
		wide + "\n" + wide + "\n" + wide + "ACDEF": true,
		wide + "\nACDEF\n" + wide:                  true,
		"ACDEFGHIK\nLMNPQRSTV\nWYACDEFGH":          true, // a library of peptides
		">a\nACDEF\nACDEFG\nACD":                   false,
	} {
		if got := ParseFASTA([]byte(text))[0].mayBeSeveral(); got != want {
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
		must.OK(t, err)
		records := ParseFASTA(text)
		if sequence := enginetest.ReferenceProtein(t, want).Sequence; len(records) != 1 || records[0].Letters != sequence {
			t.Errorf("%s.fasta holds %v, want %s", file, records, sequence)
		}
	}
}

// Records can be written and read again, and never hold white space.
func FuzzParseFASTA(f *testing.F) {
	f.Add([]byte(">a b\nACD\n>c\nEF*"))
	f.Add([]byte("ACD\r\n;x\r>\n\xff*"))
	f.Add([]byte(">sp|P1|X\n\u00a0\u212a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		first := ParseFASTA(text)
		var again strings.Builder
		for _, r := range first {
			if len(r.Name) > maxNameLength || strings.ContainsFunc(r.Name, func(c rune) bool { return c >= 128 || !isNameByte(byte(c)) }) {
				t.Errorf("name %q", r.Name)
			}
			if len(strings.Fields(r.Letters)) > 1 {
				t.Errorf("white space in %q", r.Letters)
			}
			again.WriteString(">" + r.Name + "\n\n" + guard(r.Letters) + "*\n")
		}
		second := ParseFASTA([]byte(again.String()))
		for k := range second {
			second[k].Letters = strings.Replace(second[k].Letters, "A", "", 1)
		}
		for _, records := range [][]Record{first, second} {
			for k := range records {
				records[k].Lines, records[k].Headed = nil, true
			}
		}
		must.Equal(t, "read again", second, first)
	})
}

// guard keeps a sequence that begins with '>' or ';' from becoming a header.
func guard(letters string) string { return "A" + letters }
