package fanout

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"molrun/app/base/fasta"
	"molrun/app/base/plaintext"
)

// maxID limits the length of a record's name, in characters.
const maxID = 200

// loadRecords creates an entry for each FASTA record in text, named after the first word
// of its header.
func (e *expansion) loadRecords(s *series, text []byte) {
	text = plaintext.Unix(text)
	if w := plaintext.Zero(text); w != nil { // other control characters occur in NCBI headers and as page breaks
		e.addFault(s, w.Line, "", w.Msg)
		return
	}
	records := fasta.Parse(text, e.most)
	if len(records) == 0 {
		e.addFault(s, 0, "", "the file has no records; a record begins with a line such as >P04637")
		return
	}
	seen := map[string]int{} // line number by name
	for i := range records {
		r := &records[i]
		one := entry{origin: fmt.Sprintf("record %d", i+1), line: r.Line, cells: []string{r.Letters}}
		if id := printable(r.ID()); id != "" {
			one.label = string([]rune(id)[:min(utf8.RuneCountInString(id), maxID)])
			one.origin = one.label
		}
		if msg := faultOf(r, &one, seen, i == 0 && len(records) > 1); msg != "" && i < e.most && len(e.faults) <= maxFaults {
			one.faulty = true
			e.addFault(s, r.Line, "", msg)
		}
		s.entries = append(s.entries, one)
	}
}

// printable replaces invalid UTF-8 and control characters with _.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, text)
}

// maxFaults limits the number of errors reported for the records of a file.
const maxFaults = 1000

// faultOf describes the error in a record, or returns "" if there is none. more says
// whether it is the first of several records.
func faultOf(r *fasta.Record, one *entry, seen map[string]int, more bool) string {
	id, who := r.ID(), one.origin
	if one.label != "" {
		who = fmt.Sprintf("the record %q", one.label)
	}
	first, taken := seen[id]
	unsure := fasta.Unsure(r, more)
	switch {
	case unsure != "":
		return "the file has " + unsure
	case taken && id != "":
		return fmt.Sprintf("%s occurs twice, first in line %d", who, first)
	}
	seen[id] = r.Line
	switch {
	case r.Letters == "":
		return who + " has no sequence"
	case strings.ContainsAny(r.Letters, "-.~"):
		return who + " has alignment gaps (aligned FASTA, A2M, A3M), but a job needs a plain sequence: remove the gaps"
	}
	return ""
}
