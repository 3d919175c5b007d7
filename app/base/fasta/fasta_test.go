package fasta

import (
	"math"
	"strings"
	"testing"

	"molrun/app/base/plaintext"
	"molrun/app/test/must"
)

func TestParse(t *testing.T) {
	type record struct {
		Header, Letters string
		Line            int
	}
	tests := []struct {
		name, text string
		want       []record
	}{
		{"bare sequence", "dshak RHH\n GYK*\n", []record{{"-", "DSHAKRHHGYK", 1}}},
		{"two records", ">a first\nACD\nEFG\n\n>b\nHIK\n", []record{{"a first", "ACDEFG", 1}, {"b", "HIK", 5}}},
		{"ends of lines", "\ufeff>a\r\nAC\r\nDE\r>b\rFG", []record{{"a", "ACDE", 1}, {"b", "FG", 4}}},
		{"UTF-16", "\xfe\xff\x00>\x00a\x00\r\x00\n\x00A", []record{{"a", "A", 1}}},
		{"letters of Windows in a header", ">prot\xe9ine\nACD", []record{{"prot\xe9ine", "ACD", 1}}},
		{"a mark within a header", ">A <B> >C\nACD", []record{{"A <B> >C", "ACD", 1}}},
		{"long header", ">" + strings.Repeat("x", 270_000) + "\nACD", []record{{strings.Repeat("x", 270_000), "ACD", 1}}},
		{"header without name", ">\nMDVF", []record{{"", "MDVF", 1}}},
		{"header without sequence", ">a\n>b\nMDVF", []record{{"a", "", 1}, {"b", "MDVF", 2}}},
		{"sequence before a header", "MDVF\n>b\nACD", []record{{"-", "MDVF", 1}, {"b", "ACD", 2}}},
		{"comment", "; old style\n>a\nACD\n;more\nE", []record{{"a", "ACDE", 2}}},
		{"one stop of two", ">a\nACD**", []record{{"a", "ACD*", 1}}},
		{"letters that are not plain keep their case", ">a\nacéſ", []record{{"a", "ACéſ", 1}}},
		{"blanks of all widths", ">a\nA\u00a0C\u2009D", []record{{"a", "ACD", 1}}},
		{"nothing", " \n\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []record
			for _, r := range Parse(plaintext.Unix([]byte(tt.text)), math.MaxInt) {
				if !r.Headed {
					r.Header = "-"
				}
				got = append(got, record{r.Header, r.Letters, r.Line})
			}
			must.Equal(t, "records", got, tt.want)
		})
	}
	must.Equal(t, "records of at most 10 and one", len(Parse([]byte(strings.Repeat(">\n", 1000)), 10)), 11)
}

func TestOneSequenceIsToldFromSeveral(t *testing.T) {
	wide := strings.Repeat("ACDEFGHIKL", 6)
	for text, want := range map[string]string{
		"ACDEFG":                       "",
		wide + "\n" + wide + "\nACDEF": "", // one sequence, wrapped at 60
		wide + "\n" + wide + "\n" + wide + "ACDEF": "3 lines but no header",
		wide + "\nACDEF\n" + wide:                  "3 lines but no header",
		"ACDEFGHIK\nLMNPQRSTV\nWYACDEFGH":          "3 lines but no header", // a peptide library
		">a\nACDEF\nACDEFG\nACD":                   "",
		"ACD\n>a\nACD":                             "text before the first header, \"ACD\"",
	} {
		records := Parse([]byte(text), math.MaxInt)
		if got := Unsure(&records[0], len(records) > 1); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// Records survive writing and reading, and never contain white space.
func FuzzParse(f *testing.F) {
	f.Add([]byte(">a b\nACD\n>c\nEF*"))
	f.Add([]byte("ACD\r\n;x\r>\n\xff*"))
	f.Add([]byte(">sp|P1|X\n\u00a0\u212a\n"))
	f.Add([]byte("\xff\xfe>\x00a\x00\n\x00A\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		first := Parse(plaintext.Unix(text), math.MaxInt)
		var again strings.Builder
		for _, r := range first {
			if len(strings.Fields(r.Letters)) > 1 {
				t.Errorf("white space in %q", r.Letters)
			}
			again.WriteString(">\n\nA" + r.Letters + "*\n") // a sequence that starts with > is not a header
		}
		second := Parse([]byte(again.String()), math.MaxInt)
		if len(second) != len(first) {
			t.Fatalf("%d records, then %d", len(first), len(second))
		}
		for k := range first {
			must.Equal(t, "read again", second[k].Letters, "A"+first[k].Letters)
		}
	})
}
