package input

import (
	"bytes"
	"unicode/utf16"
)

// format is a kind of document that people give instead of FASTA by mistake.
type format struct {
	begin, also string // how it begins, and what else it holds
	name        string
}

// formats are those of programs that biologists use.
var formats = []format{
	{"%PDF-", "", "a PDF document"},
	{"PK\x03\x04", "", "a Word document or a zip archive"},
	{"\xd0\xcf\x11\xe0", "", "an old Word document"},
	{"{\\rtf", "", "a document with formatting (RTF)"},
	{"\x1f\x8b", "", "a compressed file"},
	{"<", "", "a web page or XML"},
	{"LOCUS ", "", "a GenBank record"},
	{"ID ", "\nSQ ", "a UniProt or EMBL record"},
	{"HEADER ", "\nATOM ", "a PDB file"},
	{"ATOM ", "", "a PDB file"},
	{"data_", "", "an mmCIF file"},
	{"CLUSTAL", "", "a Clustal alignment"},
	{"# STOCKHOLM", "", "a Stockholm alignment"},
	{"#NEXUS", "", "a NEXUS file"},
}

// plainText decodes a text that Windows programs may have written as UTF-16. If
// it is not plain text, it returns what it is instead.
func plainText(text []byte) (plain []byte, instead string) {
	text = fromUTF16(text)
	trimmed := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	for _, f := range formats {
		if bytes.HasPrefix(trimmed, []byte(f.begin)) && bytes.Contains(trimmed, []byte(f.also)) {
			return nil, f.name
		}
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, "not plain text (it holds NUL bytes)"
	}
	return text, ""
}

// fromUTF16 decodes a text that begins with the byte order mark of UTF-16 and
// returns any other as it is.
func fromUTF16(text []byte) []byte {
	var unit func(b []byte) uint16
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		unit = func(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		unit = func(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }
	default:
		return text
	}
	var units []uint16
	for b := text[2:]; len(b) >= 2; b = b[2:] {
		units = append(units, unit(b))
	}
	return []byte(string(utf16.Decode(units)))
}
