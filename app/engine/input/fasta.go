package input

import (
	"fmt"
	"math"

	"molrun/app/base/fasta"
	"molrun/app/base/plaintext"
)

// Record is one sequence of a FASTA file.
type Record struct {
	fasta.Record
	Name string // first word of the header, made valid as a file name; can be ""
}

// ParseFASTA splits FASTA text into records. Text without headers is one sequence. Any
// text is accepted; checkSequence validates the letters.
func ParseFASTA(text []byte) []Record { return named(plaintext.Unix(text)) }

// named is like ParseFASTA for text that already has Unix line endings.
func named(text []byte) (records []Record) {
	for _, r := range fasta.Parse(text, math.MaxInt) {
		records = append(records, Record{r, nameFrom(r.Header)})
	}
	return records
}

// Records returns the records of FASTA text. If the text cannot be separated into
// sequences, wrong says why, as the predicate of a sentence whose subject is the name of
// the text. Text that is not a single chain must not be treated as one.
func Records(text []byte) (records []Record, wrong string) {
	text = plaintext.Unix(text)
	if what := detectFormat(text); what != "" {
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
