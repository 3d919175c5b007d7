package input

import (
	"fmt"
	"math"

	"molrun/app/base/fasta"
	"molrun/app/base/plaintext"
)

// Record is one sequence of a FASTA text.
type Record struct {
	fasta.Record
	Name string // from the first word of the header, fit for a file name; or ""
}

// ParseFASTA splits a text into records. A text without headers is one sequence.
// Any text is accepted: checkSequence looks at the letters.
func ParseFASTA(text []byte) []Record { return named(plaintext.Unix(text)) }

// named is ParseFASTA of a text with line feeds.
func named(text []byte) (records []Record) {
	for _, r := range fasta.Parse(text, math.MaxInt) {
		records = append(records, Record{r, nameFrom(r.Header)})
	}
	return records
}

// Records returns the records of a FASTA text. The sentence, which begins with the name of the
// text, says why they can't be separated: text that is not meant as one chain must not be
// taken for one.
func Records(text []byte) (records []Record, wrong string) {
	text = plaintext.Unix(text)
	if what := instead(text); what != "" {
		return nil, fmt.Sprintf("is %s; save the sequences as plain text in FASTA format: a line \">name\" above the letters of each", what)
	}
	records = named(text)
	if len(records) == 0 {
		return nil, ""
	}
	if doubt := fasta.Unsure(&records[0].Record, len(records) > 1); doubt != "" {
		return nil, "has " + doubt
	}
	return records, ""
}
