package fanout

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxID bounds the name of a record, in characters.
const maxID = 200

// readFASTA returns the records of a FASTA text. Letters become upper case and
// white space goes, as the format wants it; lines that begin with a semicolon are
// comments. There is no more than one beyond most.
func readFASTA(data []byte, most int) ([]entry, []mistake) {
	text, mistakes := readText(data)
	if mistakes != nil {
		return nil, mistakes
	}
	f := fastaReader{most: most, seen: map[string]int{}}
	for line := range strings.Lines(string(text)) {
		f.line++
		f.read(strings.TrimSpace(line))
		if len(f.records) > most || len(f.mistakes) > maxMistakes {
			break
		}
	}
	f.end()
	if len(f.records) == 0 && len(f.mistakes) == 0 {
		f.mistakes = []mistake{wrong(0, "the file has no record: each begins with a line such as >P04637")}
	}
	return f.records, f.mistakes
}

// maxMistakes bounds what is told of one file.
const maxMistakes = 1000

type fastaReader struct {
	most     int // records
	line     int
	records  []entry
	sequence strings.Builder
	seen     map[string]int // line by ID
	strayed  bool           // letters before the first record are told
	mistakes []mistake
}

func (f *fastaReader) read(line string) {
	switch {
	case line == "" || line[0] == ';':
	case line[0] == '>':
		f.end()
		f.begin(line[1:])
	case len(f.records) == 0:
		if !f.strayed {
			f.mistakes = append(f.mistakes, wrong(f.line, "a record begins with a line such as >P04637, and this stands before the first"))
		}
		f.strayed = true
	default:
		for _, part := range strings.Fields(line) {
			f.sequence.WriteString(strings.ToUpper(part))
		}
	}
}

// begin begins a record with the header behind its mark. The first word is its ID.
func (f *fastaReader) begin(header string) {
	r := entry{line: f.line}
	if words := strings.Fields(header); len(words) > 0 {
		r.origin = words[0]
	}
	first, taken := f.seen[r.origin]
	switch {
	case r.origin == "":
		r.fail(f, "give the record an ID: the first word behind >")
	case utf8.RuneCountInString(r.origin) > maxID:
		r.fail(f, fmt.Sprintf("use an ID of at most %d characters", maxID))
	case taken:
		r.fail(f, fmt.Sprintf("the record %q is there twice, first in line %d", r.origin, first))
	default:
		f.seen[r.origin] = f.line
	}
	r.label = r.origin
	f.records = append(f.records, r)
}

func (r *entry) fail(f *fastaReader, msg string) {
	r.faulty = true
	f.mistakes = append(f.mistakes, wrong(r.line, "%s", msg))
}

// end ends the record that was begun last.
func (f *fastaReader) end() {
	if len(f.records) == 0 {
		return
	}
	r := &f.records[len(f.records)-1]
	r.cells = []string{f.sequence.String()}
	f.sequence.Reset()
	if r.cells[0] == "" && !r.faulty && len(f.records) <= f.most {
		r.fail(f, fmt.Sprintf("the record %q has no sequence", r.origin))
	}
}
