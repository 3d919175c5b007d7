// Package tables reads text files of columns as programs write them: separated by commas,
// tabs, semicolons or blanks, with or without a header, with comments. It thins series of
// numbers for drawing and sorts tables by page, in memory that does not grow with the
// file. Sheet is a table saved from a spreadsheet, as text or as a workbook, which is
// read into memory as a whole.
package tables

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
)

// Limits of a table.
const (
	MaxColumns = 1000
	maxRecord  = 1 << 20 // bytes per row
	bufferSize = 128 << 10
)

// Error says why a file can't be read as a table, in words for its user. It completes a
// sentence that starts with the file's name.
type Error string

func (e Error) Error() string { return string(e) }

func errorf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// Table is an open file of rows.
type Table struct {
	Columns []string // unique names

	file     io.ReaderAt
	size     int64
	complete bool
	sep      byte // blank means any number of blanks
	begin    Position
	isXVG    bool
	held     int // how many numbers of a series can be kept in memory
}

const blank = ' '

// Position is the start of a row.
type Position struct {
	Offset int64 // in the file
	Row    int64 // from 0
	line   int64 // from 1; 0 if unknown
}

// Open reads the head of a file of this size. Its name hints at the separator. A last
// line without a line end counts only if the file is complete. A file without rows has no
// columns.
func Open(file io.ReaderAt, size int64, name string, complete bool) (*Table, error) {
	t := &Table{file: file, size: size, complete: complete, isXVG: path.Ext(name) == ".xvg", held: maxHeld}
	h, err := t.readHead()
	if err != nil || h.first == nil {
		return t, err
	}
	t.sep = separator(path.Ext(name), h.first, h.second)
	cells := t.split(h.first, nil)
	t.begin = h.begin
	if len(cells) > MaxColumns {
		return nil, errorf("has %d columns; at most %d are supported", len(cells), MaxColumns)
	}
	if isHeader(cells) {
		t.Columns = texts(cells)
		t.begin = h.next
	} else {
		t.Columns = h.names(t, len(cells))
	}
	t.Columns = unique(t.Columns)
	return t, nil
}

// head is the beginning of a file.
type head struct {
	first, second []byte // rows
	begin, next   Position
	comment       []byte            // the last one before the first row
	legends       map[string]string // legends of an .xvg file, keyed by xaxis, s0, s1, …
}

func (t *Table) readHead() (h head, err error) {
	r := t.rows(Position{line: 1})
	r.skipMark()
	r.comment = func(text []byte) {
		if h.first != nil {
			return
		}
		h.comment = bytes.Clone(text)
		h.addLegend(string(text))
	}
	if !r.record() {
		return h, r.Err()
	}
	h.first, h.begin, h.next = bytes.Clone(r.raw), r.at, r.end()
	h.next.Row = 0
	if r.record() {
		h.second = bytes.Clone(r.raw)
	}
	return h, r.Err()
}

// addLegend reads a line of an .xvg file such as `@ s0 legend "Rg"`.
func (h *head) addLegend(line string) {
	rest, isCommand := strings.CutPrefix(line, "@")
	what, text, _ := strings.Cut(rest, `"`)
	text, _, isQuoted := strings.Cut(text, `"`)
	fields := strings.Fields(what)
	if !isCommand || !isQuoted || len(fields) != 2 || fields[1] != "legend" && fields[1] != "label" {
		return
	}
	if h.legends == nil {
		h.legends = map[string]string{}
	}
	h.legends[fields[0]] = text
}

// names returns the names of columns without a header: from the legends of an .xvg file,
// or from the last comment if it has as many cells.
func (h *head) names(t *Table, columns int) []string {
	names := make([]string, columns)
	if columns > 0 {
		names[0] = h.legends["xaxis"]
	}
	for i := 1; i < columns; i++ {
		names[i] = h.legends["s"+strconv.Itoa(i-1)]
	}
	if cells := t.split(bytes.TrimLeft(h.comment, "#@&"), nil); len(h.legends) == 0 && len(cells) == columns && isHeader(cells) {
		return texts(cells)
	}
	return names
}

// separator guesses the separator of the cells: the first one that splits both of the
// first rows into the same number of cells.
func separator(extension string, first, second []byte) byte {
	extension = strings.ToLower(extension)
	if extension == ".tsv" || extension == ".tab" {
		return '\t'
	}
	candidates := []byte{'\t', ';', ','}
	for _, sep := range candidates {
		n := bytes.Count(first, []byte{sep})
		if n > 0 && (second == nil || n == len(splitQuoted(second, sep, nil))-1 || n == bytes.Count(second, []byte{sep})) {
			return sep
		}
	}
	for _, sep := range candidates {
		if extension == ".csv" && bytes.IndexByte(first, sep) >= 0 {
			return sep
		}
	}
	if extension == ".csv" {
		return ','
	}
	return blank
}

// isHeader reports whether cells are column names: at least one is text, and none is a
// number.
func isHeader(cells [][]byte) bool {
	named := false
	for _, c := range cells {
		v, ok := Number(c)
		if ok && !math.IsNaN(v) {
			return false
		}
		named = named || !ok
	}
	return named
}

func texts(cells [][]byte) []string {
	all := make([]string, len(cells))
	for i, c := range cells {
		all[i] = strings.ToValidUTF8(string(c), "\uFFFD")
	}
	return all
}

// unique makes all column names distinct. A column without a name gets its number.
func unique(names []string) []string {
	taken := map[string]bool{}
	for i, name := range names {
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		free := name
		for n := 2; taken[free]; n++ {
			free = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[free] = true
		names[i] = free
	}
	return names
}
