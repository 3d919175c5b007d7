package input

import "bytes"

// format is a file format that users submit by mistake instead of FASTA.
type format struct {
	begin, also string // prefix, and a string that the rest must contain
	name        string
}

// formats lists the file formats that biologists commonly use.
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

// detectFormat describes the format of text that is not plain text. It returns "" for
// plain text.
func detectFormat(text []byte) string {
	trimmed := bytes.TrimSpace(text)
	for _, f := range formats {
		if bytes.HasPrefix(trimmed, []byte(f.begin)) && bytes.Contains(trimmed, []byte(f.also)) {
			return f.name
		}
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "not plain text (it holds NUL bytes)"
	}
	return ""
}
