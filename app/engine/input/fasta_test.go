package input

import (
	"os"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

func TestNamesOfRecordsAreFitForFiles(t *testing.T) {
	for header, want := range map[string]string{
		"a first": "a", "sp|P37840|SYUA_HUMAN Alpha-synuclein": "sp_P37840_SYUA_HUMAN", "": "",
		strings.Repeat("n", 70): strings.Repeat("n", 64), "naïve/../x": "na_ve_.._x", "prot\xe9ine": "prot_ine",
	} {
		if records := ParseFASTA([]byte(">" + header + "\nACD")); len(records) != 1 || records[0].Name != want {
			t.Errorf("%q: %v, want %q", header, records, want)
		}
	}
}

func TestRecordsAreReadOrASentenceSaysWhyNot(t *testing.T) {
	for text, want := range map[string]string{
		">a\nACD":                         "",
		"ACDEFG":                          "",
		"":                                "",
		"\xff\xfe>\x00a\x00\n\x00A\x00":   "",
		"HEADER ACD":                      "", // a sequence that starts like a PDB file
		">\x00a\x00":                      "is not plain text (it holds NUL bytes); save",
		"%PDF-1.7\n":                      "is a PDF document; save",
		"PK\x03\x04\x14\x00":              "is a Word document or a zip archive; save",
		"HEADER    VIRAL\nATOM      1  N": "is a PDB file; save",
		"\ufeff \n<!DOCTYPE html>":        "is a web page or XML; save",
		"ACDEF\nACDEFG\nACD":              "has 3 lines but no header",
		"#24,12\n>a\nACD":                 "has text before the first header, \"#24,12\"",
	} {
		if records, wrong := Records([]byte(text)); want == "" && wrong != "" || !strings.HasPrefix(wrong, want) || wrong != "" && records != nil {
			t.Errorf("%q: %v, %q, want %q", text, records, wrong, want)
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
