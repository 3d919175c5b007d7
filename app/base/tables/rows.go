package tables

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// Rows iterates over the rows of a table.
type Rows struct {
	t       *Table
	in      *bufio.Reader
	comment func(text []byte) // receives every comment; optional
	offset  int64             // of the next read
	line    int64
	at      Position // of the row
	next    int64    // number of the next row
	raw     []byte   // the row's text
	long    []byte   // buffer for rows that exceed the reader's buffer
	cells   [][]byte
	err     error
}

// Begin returns the position of the first row.
func (t *Table) Begin() Position { return t.begin }

// Rows returns the rows starting at a position.
func (t *Table) Rows(from Position) *Rows { return t.rows(from) }

func (t *Table) rows(from Position) *Rows {
	r := &Rows{t: t, in: bufio.NewReaderSize(nil, bufferSize)}
	r.seek(from)
	return r
}

func (r *Rows) seek(to Position) {
	r.in.Reset(io.NewSectionReader(r.t.file, to.Offset, max(0, r.t.size-to.Offset)))
	r.offset, r.next, r.line, r.err = to.Offset, to.Row, to.line, nil
}

// skipMark skips the byte order mark at the start of some files.
func (r *Rows) skipMark() {
	if mark, _ := r.in.Peek(3); string(mark) == "\uFEFF" {
		n, _ := r.in.Discard(3)
		r.offset += int64(n)
	}
}

// Next reads a row. It returns false at the end, or if the row can't be read.
func (r *Rows) Next() bool {
	if !r.record() {
		return false
	}
	r.cells = r.t.split(r.raw, r.cells[:0])
	return true
}

// Cells returns the cells of the row without surrounding blanks, valid until the next
// call of Next. There can be fewer or more cells than columns.
func (r *Rows) Cells() [][]byte { return r.cells }

// At returns the start of the row.
func (r *Rows) At() Position { return r.at }

// Err returns why there are no more rows, or nil at the end. It is an Error if the file
// is the cause.
func (r *Rows) Err() error { return r.err }

// end returns the start of the next row.
func (r *Rows) end() Position { return Position{r.offset, r.next, r.line} }

// record reads the text of a row, without its line end.
func (r *Rows) record() bool {
	for r.err == nil {
		r.at = r.end()
		line, ok := r.readLine(0)
		if !ok {
			return false
		}
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			continue
		}
		if r.isComment(text) {
			if r.comment != nil {
				r.comment(text)
			}
			continue
		}
		if r.t.quotes() && bytes.IndexByte(line, '"') >= 0 && openQuote(line, r.t.sep, false) {
			if line, ok = r.readQuoted(line); !ok {
				return false
			}
		}
		r.raw = line
		r.next++
		return true
	}
	return false
}

func (r *Rows) isComment(text []byte) bool {
	return text[0] == '#' || r.t.isXVG && (text[0] == '@' || text[0] == '&')
}

// readQuoted continues to read while a quoted cell extends past the end of a line.
func (r *Rows) readQuoted(line []byte) ([]byte, bool) {
	all := bytes.Clone(line)
	for open := true; open; {
		more, ok := r.readLine(len(all))
		if !ok {
			return all, r.err == nil && r.t.complete
		}
		open = openQuote(more, r.t.sep, true)
		all = append(append(all, '\n'), more...)
	}
	return all, true
}

// readLine reads a line without its line end. before is how much of the same row has
// already been read.
func (r *Rows) readLine(before int) ([]byte, bool) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = append(r.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) && len(r.long) <= maxRecord {
			line, err = r.in.ReadSlice('\n')
			r.long = append(r.long, line...)
		}
		line = r.long
	}
	switch {
	case len(line)+before > maxRecord:
		r.err = errorf("has a row of more than %d bytes at line %d", maxRecord, r.at.line)
		return nil, false
	case err != nil && !errors.Is(err, io.EOF):
		r.err = err
		return nil, false
	case err != nil && (len(line) == 0 || !r.t.complete): // an incomplete last line
		return nil, false
	}
	r.offset += int64(len(line))
	if r.line > 0 {
		r.line++
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), true
}

// quotes reports whether cells can be quoted.
func (t *Table) quotes() bool { return t.sep != blank && t.sep != 0 }

// split splits a row into cells, which it appends to cells.
func (t *Table) split(row []byte, cells [][]byte) [][]byte {
	switch {
	case !t.quotes():
		return t.splitBlanks(row, cells)
	case bytes.IndexByte(row, '"') >= 0:
		return splitQuoted(row, t.sep, cells)
	}
	for {
		i := bytes.IndexByte(row, t.sep)
		if i < 0 {
			return append(cells, trim(row))
		}
		cells = append(cells, trim(row[:i]))
		row = row[i+1:]
	}
}

// splitBlanks splits a row at blanks. The last column takes the rest of the row, because
// it often is a description.
func (t *Table) splitBlanks(row []byte, cells [][]byte) [][]byte {
	for row = trim(row); len(row) > 0; {
		i := bytes.IndexAny(row, " \t")
		if i < 0 || len(t.Columns) > 1 && len(cells) == len(t.Columns)-1 {
			return append(cells, row)
		}
		cells = append(cells, row[:i])
		row = trim(row[i:])
	}
	return cells
}

// splitQuoted splits a row that can have quoted cells, in which "" stands for a quote.
func splitQuoted(row []byte, sep byte, cells [][]byte) [][]byte {
	for {
		cell, rest, more := cutCell(row, sep)
		cells = append(cells, cell)
		if !more {
			return cells
		}
		row = rest
	}
}

// cutCell returns the first cell of a row and the text after its separator.
func cutCell(row []byte, sep byte) (cell, rest []byte, more bool) {
	start := skipBlanks(row, sep)
	if len(start) == 0 || start[0] != '"' {
		cell, rest, more = bytes.Cut(row, []byte{sep})
		return trim(cell), rest, more
	}
	text, after := cutQuoted(start[1:])
	_, rest, more = bytes.Cut(after, []byte{sep})
	return text, rest, more
}

func skipBlanks(row []byte, sep byte) []byte {
	for len(row) > 0 && (row[0] == ' ' || row[0] == '\t') && row[0] != sep {
		row = row[1:]
	}
	return row
}

// cutQuoted returns quoted text up to its closing quote, and the rest of the row.
func cutQuoted(row []byte) (text, rest []byte) {
	for {
		i := bytes.IndexByte(row, '"')
		if i < 0 {
			return append(text, row...), nil
		}
		text = append(text, row[:i]...)
		row = row[i+1:]
		if len(row) == 0 || row[0] != '"' {
			return text, row
		}
		text, row = append(text, '"'), row[1:]
	}
}

// openQuote reports whether a quoted cell continues on the next line. within says whether
// one continues on this line.
func openQuote(line []byte, sep byte, within bool) bool {
	for {
		if !within {
			if line = skipBlanks(line, sep); len(line) > 0 && line[0] == '"' {
				line = line[1:]
			} else {
				_, rest, more := bytes.Cut(line, []byte{sep})
				if !more {
					return false
				}
				line = rest
				continue
			}
		}
		i := bytes.IndexByte(line, '"')
		for i >= 0 && i+1 < len(line) && line[i+1] == '"' {
			line = line[i+2:]
			i = bytes.IndexByte(line, '"')
		}
		if i < 0 {
			return true
		}
		_, rest, more := bytes.Cut(line[i+1:], []byte{sep})
		if !more {
			return false
		}
		line, within = rest, false
	}
}

func trim(cell []byte) []byte {
	for len(cell) > 0 && (cell[0] == ' ' || cell[0] == '\t') {
		cell = cell[1:]
	}
	for n := len(cell); n > 0 && (cell[n-1] == ' ' || cell[n-1] == '\t'); n = len(cell) {
		cell = cell[:n-1]
	}
	return cell
}

// Number returns the number in a cell. It is NaN if the cell is empty, contains text such
// as "NA", or is infinite. ok is false for any other text.
func Number(cell []byte) (v float64, ok bool) {
	if len(cell) == 0 {
		return math.NaN(), true
	}
	v, err := strconv.ParseFloat(string(cell), 64)
	if err == nil {
		if math.IsInf(v, 0) {
			v = math.NaN()
		}
		return v, plain(cell) || math.IsNaN(v)
	}
	switch strings.ToLower(string(cell[:min(len(cell), 8)])) {
	case "na", "n/a", "null", "none", "-", "--":
		return math.NaN(), true
	}
	if errors.Is(err, strconv.ErrRange) {
		return math.NaN(), true
	}
	if i := bytes.IndexAny(cell, "dD"); i > 0 && len(cell) < 64 { // Fortran format: 1.0D+02
		v, err = strconv.ParseFloat(string(cell[:i])+"e"+string(cell[i+1:]), 64)
		return v, err == nil && plain(cell[:i])
	}
	return 0, false
}

// plain reports whether a number has only decimal digits, because ParseFloat also accepts
// hexadecimal numbers.
func plain(cell []byte) bool { return !bytes.ContainsAny(cell, "xX_") }
