package fanout

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"molrun/app/base/unit"
)

// nameColumn is the column that names the rows.
const nameColumn = "jobName"

// maxCells bounds what reading a table takes of memory.
const maxCells = 2_000_000

// table is a text of separated values. Columns are named by its first line.
type table struct {
	columns  []string // jobName among them
	rows     []entry
	mistakes []mistake
}

// readTable reads a table. There is no more than one row beyond most. Lines with
// only empty cells are left out, as spreadsheets write them at the end. Space
// around a cell does not count.
func readTable(data []byte, kind Kind, most int) table {
	text, mistakes := readText(data)
	if mistakes != nil {
		return table{mistakes: mistakes}
	}
	separator := separatorOf(text, kind)
	if n := bytes.Count(text, []byte(string(separator))); n > maxCells {
		return table{mistakes: []mistake{wrong(0, "the table has %d times %q; at most %d are read", n, separator, maxCells)}}
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.ReuseRecord = separator, -1, true
	r.TrimLeadingSpace = separator != '\t' // a tab is space
	var t table
	for len(t.rows) <= most && len(t.mistakes) <= maxMistakes {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		t.read(r, cells, err)
	}
	if t.columns == nil && t.mistakes == nil {
		t.mistakes = []mistake{wrong(0, "the table is empty: its first line names the settings")}
	}
	return t
}

// separatorOf finds out what separates the cells. No setting has a semicolon or a
// tab in its name, so the first line tells.
func separatorOf(text []byte, kind Kind) rune {
	first, _, _ := bytes.Cut(bytes.TrimLeft(text, "\n"), lineFeed)
	switch {
	case kind == TSV:
		return '\t'
	case bytes.ContainsRune(first, ','):
		return ','
	case bytes.ContainsRune(first, ';'):
		return ';'
	case bytes.ContainsRune(first, '\t'):
		return '\t'
	}
	return ','
}

func (t *table) read(r *csv.Reader, cells []string, err error) {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		t.mistakes = append(t.mistakes, quoteMistake(parse))
		return
	}
	line := 0
	if len(cells) > 0 {
		line, _ = r.FieldPos(0)
	}
	cells = slices.Clone(cells)
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	origin := fmt.Sprintf("line %d", line)
	switch {
	case t.columns == nil:
		t.header(line, cells)
	case !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }):
	case len(cells) != len(t.columns):
		t.rows = append(t.rows, entry{origin: origin, line: line, faulty: true})
		t.mistakes = append(t.mistakes, wrong(line, "the line has %s, the first line names %d; put a cell with a separator in quotes", unit.Count(len(cells), "cell"), len(t.columns)))
	default:
		t.rows = append(t.rows, entry{origin: origin, line: line, cells: cells})
	}
}

func quoteMistake(err *csv.ParseError) mistake {
	if errors.Is(err.Err, csv.ErrBareQuote) {
		return wrong(err.Line, `a cell with a quote in it stands in quotes, with the quote doubled: "a ""b"" c"`)
	}
	return wrong(err.StartLine, `a quote is not closed, or something follows it in its cell; within quotes write "" for a quote`)
}

func (t *table) header(line int, cells []string) {
	t.columns = cells
	seen := map[string]bool{}
	for i, name := range cells {
		switch {
		case name == "":
			t.mistakes = append(t.mistakes, wrong(line, "column %d has no name: name a setting, or remove the column", i+1))
		case seen[name]:
			t.mistakes = append(t.mistakes, wrong(line, "the column %q is there twice", name))
		}
		seen[name] = true
	}
}
