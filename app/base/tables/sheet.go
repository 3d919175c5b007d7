package tables

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
)

// Sheet is a table saved from a spreadsheet: its first row names the columns. Empty
// columns and rows are omitted, as is white space around cells.
type Sheet struct {
	Columns []string
	Rows    []SheetRow
	Wrong   []*plaintext.FileError
	Local   bool // cells are separated by semicolons or tabs, and numbers can have a decimal comma

	head    int          // line with the column names
	unnamed map[int]bool // columns without a name that have cells
}

// SheetRow is a row of a sheet.
type SheetRow struct {
	Line  int      // line number in the file, from 1
	Cells []string // as many as columns; nil if the row has an error
}

// Limits of a sheet.
const (
	maxWrong = 1000
	maxCells = 2_000_000
)

// ReadSheet reads CSV or TSV text with the encoding, separators and line endings of any
// spreadsheet, or an .xlsx workbook. It reads at most most+1 rows. tabs says that tabs
// separate the cells; otherwise the first line decides.
func ReadSheet(data []byte, tabs bool, most int) *Sheet {
	s := &Sheet{unnamed: map[int]bool{}}
	if what := document(data); what != "" {
		s.fail(0, "%s", what)
	} else if isZip(data) {
		s.readWorkbook(data, most)
	} else {
		s.readText(data, tabs, most)
	}
	if s.Columns == nil && s.Wrong == nil {
		s.fail(0, "the table is empty: its first line names the settings")
	}
	return s
}

func (s *Sheet) fail(line int, format string, args ...any) {
	s.Wrong = append(s.Wrong, &plaintext.FileError{Line: line, Msg: fmt.Sprintf(format, args...)})
}

// document returns an error message for a file that is neither text nor an .xlsx
// workbook, or "" for other files.
func document(data []byte) string {
	for begin, what := range map[string]string{
		"\xd0\xcf\x11\xe0": "this is an old Excel file (.xls) or password-protected",
		"%PDF-":            "this is a PDF document",
		"{\\rtf":           "this is a rich text document (RTF)",
		"\x1f\x8b":         "this is a compressed file",
	} {
		if bytes.HasPrefix(data, []byte(begin)) {
			return what + "; save the table as .xlsx or CSV"
		}
	}
	return ""
}

func (s *Sheet) readText(data []byte, tabs bool, most int) {
	text, bad := plaintext.Decode(data)
	if bad != nil {
		s.Wrong = append(s.Wrong, bad)
		return
	}
	text, separator := separated(text, tabs)
	s.Local = separator != ','
	if n := bytes.Count(text, []byte(string(separator))); n > maxCells {
		s.fail(0, "the table has %d separators %q; at most %d are supported", n, separator, maxCells)
		return
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.ReuseRecord = separator, -1, true
	r.TrimLeadingSpace = separator != '\t' // a tab counts as white space
	for !s.full(most) {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if parse, ok := errors.AsType[*csv.ParseError](err); ok {
			s.failQuote(parse)
			continue
		}
		line := 0
		if len(cells) > 0 {
			line, _ = r.FieldPos(0)
		}
		s.appendRow(line, slices.Clone(cells))
	}
}

func (s *Sheet) full(most int) bool { return len(s.Rows) > most || len(s.Wrong) > maxWrong }

// separated determines the separator of the cells. Excel can specify it in a separate
// first line, which is emptied. Otherwise the first line with names decides, because no
// setting has a semicolon or a tab in its name.
func separated(text []byte, tabs bool) ([]byte, rune) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	said := strings.Trim(string(first), `" `)
	if by, ok := strings.CutPrefix(strings.ToLower(said), "sep="); ok && len(by) == 1 && strings.Contains(",;\t", by) {
		return append([]byte("\n"), rest...), rune(by[0])
	}
	first, _, _ = bytes.Cut(bytes.TrimLeft(text, "\n"), []byte("\n"))
	switch {
	case tabs:
		return text, '\t'
	case bytes.ContainsRune(first, ','):
		return text, ','
	case bytes.ContainsRune(first, ';'):
		return text, ';'
	case bytes.ContainsRune(first, '\t'):
		return text, '\t'
	}
	return text, ','
}

func (s *Sheet) failQuote(err *csv.ParseError) {
	if errors.Is(err.Err, csv.ErrBareQuote) {
		s.fail(err.Line, `a cell with a quote in it stands in quotes, with the quote doubled: "a ""b"" c"`)
		return
	}
	s.fail(err.StartLine, `a quote is not closed, or something follows it in its cell; within quotes write "" for a quote`)
}

// appendRow adds a row. The first row names the columns.
func (s *Sheet) appendRow(line int, cells []string) {
	for i := range cells {
		cells[i] = plainCell(cells[i])
	}
	width := len(cells)
	for width > 0 && cells[width-1] == "" {
		width--
	}
	switch {
	case width == 0:
	case s.Columns == nil:
		s.Columns, s.head = cells[:width], line
		s.checkNames()
	case width > len(s.Columns):
		s.rejectf(line, "the line has %s, but the first line names %d; quote cells that contain a separator", unit.Count(width, "cell"), len(s.Columns))
	case len(cells) < len(s.Columns):
		s.rejectf(line, "the line has %s, but the first line names %d; it might be truncated", unit.Count(len(cells), "cell"), len(s.Columns))
	default:
		s.addRow(line, cells[:len(s.Columns)])
	}
}

func (s *Sheet) rejectf(line int, format string, args ...any) {
	s.Rows = append(s.Rows, SheetRow{Line: line})
	s.fail(line, format, args...)
}

// addRow adds a row that has a cell for each column. A column without a name is one that
// the spreadsheet left empty.
func (s *Sheet) addRow(line int, cells []string) {
	for i, name := range s.Columns {
		if name != "" || cells[i] == "" {
			continue
		}
		if !s.unnamed[i] {
			s.fail(s.head, "column %d has cells but no name (see line %d): name a setting, or remove the column", i+1, line)
		}
		s.unnamed[i] = true
	}
	s.Rows = append(s.Rows, SheetRow{line, cells})
}

func (s *Sheet) checkNames() {
	seen := map[string]bool{}
	for _, name := range s.Columns {
		if name != "" && seen[name] {
			s.fail(s.head, "the column %q occurs twice", name)
		}
		seen[name] = true
	}
}

// plainCell removes what programs put around the text of a cell: white space of any width
// and typographic quotes.
func plainCell(cell string) string {
	cell = strings.TrimFunc(cell, isSpace)
	for _, q := range [][2]string{{"“", "”"}, {"„", "“"}, {"„", "”"}, {"«", "»"}, {"»", "«"}} {
		if inner, ok := strings.CutPrefix(cell, q[0]); ok && strings.HasSuffix(inner, q[1]) {
			return strings.TrimFunc(strings.TrimSuffix(inner, q[1]), isSpace)
		}
	}
	return cell
}

// isSpace reports whether a character is displayed as empty space.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || r == '\u200b' || r == '\u2060' || r == '\ufeff'
}
