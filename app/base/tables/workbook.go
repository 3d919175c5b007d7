package tables

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
)

// Limits of the unpacked files in a workbook.
const (
	maxPart = 32 << 20 // for a file with cells or strings
	maxHead = 4 << 20  // for a file with names or formats
)

func isZip(data []byte) bool { return bytes.HasPrefix(data, []byte("PK\x03\x04")) }

// workbook is an .xlsx file.
type workbook struct {
	files   *zip.Reader
	strings []string
	formats []bool // by style: whether its cells are dates
	from    int    // days between the 1900 date system and that of the workbook: 0 or 1462
}

// readWorkbook reads the only visible sheet of a workbook that has cells.
func (s *Sheet) readWorkbook(data []byte, most int) {
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err == nil {
		err = s.readSheets(&workbook{files: files}, most)
	}
	if said, ok := errors.AsType[Error](err); ok {
		s.fail(0, "%s", string(said))
	} else if err != nil && !errors.Is(err, errFull) {
		s.fail(0, "this is a damaged .xlsx file, or another kind of file (%v); save the table as .xlsx or CSV", err)
	}
}

// errFull means that no more rows are read.
var errFull = errors.New("full")

func (s *Sheet) readSheets(b *workbook, most int) error {
	parts, err := b.openSheets()
	if err != nil {
		return err
	}
	used := -1
	for i, part := range parts {
		err := b.sheet(part.path, func(row sheetRow) error {
			if used >= 0 && used != i {
				return errorf("the sheets %q and %q both have cells: keep only one", parts[used].name, part.name)
			}
			used = i
			s.addWritten(row)
			if s.full(most) {
				return errFull
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addWritten adds a row, whose last cells can be missing.
func (s *Sheet) addWritten(row sheetRow) {
	if row.wrong != "" {
		s.rejectf(row.number, "%s", row.wrong)
		return
	}
	for len(row.cells) < len(s.Columns) {
		row.cells = append(row.cells, "")
	}
	s.appendRow(row.number, row.cells)
}

// sheetPart is a sheet of a workbook.
type sheetPart struct{ name, path string }

// openSheets reads the data that all sheets share, and returns the visible sheets.
func (b *workbook) openSheets() ([]sheetPart, error) {
	var book struct {
		Properties struct {
			From1904 string `xml:"date1904,attr"`
		} `xml:"workbookPr"`
		Sheets []struct {
			Name  string `xml:"name,attr"`
			State string `xml:"state,attr"`
			ID    string `xml:"http://schemas.openxmlformats.org/officeDocument/2006/relationships id,attr"`
			Other string `xml:"http://purl.oclc.org/ooxml/officeDocument/relationships id,attr"` // in the strict format
		} `xml:"sheets>sheet"`
	}
	var related struct {
		All []struct {
			ID     string `xml:"Id,attr"`
			Type   string `xml:"Type,attr"`
			Target string `xml:"Target,attr"`
		} `xml:"Relationship"`
	}
	err := errors.Join(b.decode("xl/workbook.xml", &book), b.decode("xl/_rels/workbook.xml.rels", &related))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errorf("this is not an Excel workbook (.xlsx); save the table as .xlsx or CSV")
	}
	if err != nil {
		return nil, err
	}
	if on, _ := strconv.ParseBool(book.Properties.From1904); on {
		b.from = 1462
	}
	targets := map[string]string{}
	for _, r := range related.All {
		if path.Base(r.Type) == "worksheet" {
			targets[r.ID] = r.Target
		}
	}
	var parts []sheetPart
	for _, sheet := range book.Sheets {
		if target := targets[cmp.Or(sheet.ID, sheet.Other)]; target != "" && (sheet.State == "" || sheet.State == "visible") {
			parts = append(parts, sheetPart{sheet.Name, partOf(target)})
		}
	}
	for _, err := range []error{b.readStrings(), b.readStyles()} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // these are optional
			return nil, err
		}
	}
	return parts, nil
}

// partOf returns the path of a file to which the workbook refers.
func partOf(target string) string {
	if absolute, ok := strings.CutPrefix(target, "/"); ok {
		return absolute
	}
	return path.Join("xl", target)
}

// decode decodes a whole file of the workbook.
func (b *workbook) decode(name string, into any) error {
	return b.readPart(name, maxHead, func(d *xml.Decoder) error { return d.Decode(into) })
}

// readPart reads a file of a limited size.
func (b *workbook) readPart(name string, most int64, read func(*xml.Decoder) error) error {
	f, err := b.files.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() // opened only for reading
	bounded := &io.LimitedReader{R: f, N: most}
	err = read(xml.NewDecoder(bounded))
	if bounded.N == 0 {
		return errorf("the workbook has more than %s in %s; save the table as CSV", unit.Bytes(most), name)
	}
	return err
}

// richText is text with or without formatting.
type richText struct {
	Text string `xml:"t"`
	Runs []struct {
		Text string `xml:"t"`
	} `xml:"r"`
}

var escaped = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

func (t *richText) String() string {
	text := t.Text
	for _, run := range t.Runs {
		text += run.Text
	}
	text = escaped.ReplaceAllStringFunc(text, func(code string) string {
		r, _ := strconv.ParseUint(code[2:6], 16, 16)
		return string(rune(r))
	})
	return string(plaintext.Unix([]byte(text)))
}

func (b *workbook) readStrings() error {
	return b.readPart("xl/sharedStrings.xml", maxPart, func(d *xml.Decoder) error {
		return eachElement(d, func(start *xml.StartElement) error {
			if start.Name.Local != "si" {
				return nil
			}
			var text richText
			err := d.DecodeElement(&text, start)
			if b.strings = append(b.strings, text.String()); len(b.strings) > maxCells {
				return errorf("the table has more than %d texts", maxCells)
			}
			return err
		})
	})
}

// eachElement calls do with the start of each element, which it can decode.
func eachElement(d *xml.Decoder, do func(*xml.StartElement) error) error {
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if start, ok := token.(xml.StartElement); ok {
			if err := do(&start); err != nil {
				return err
			}
		}
	}
}

// sheetRow is a row of a sheet.
type sheetRow struct {
	number int
	cells  []string
	wrong  string
}

// cell is a cell as in the file.
type cell struct {
	Place   string   `xml:"r,attr"`
	Type    string   `xml:"t,attr"`
	Style   int      `xml:"s,attr"`
	Formula *string  `xml:"f"`
	Value   string   `xml:"v"`
	Inline  richText `xml:"is"`
}

// sheet reads the rows of a sheet that have cells.
func (b *workbook) sheet(name string, add func(sheetRow) error) error {
	var row sheetRow
	cells := 0
	end := func() error {
		switch cells += len(row.cells); {
		case cells > maxCells:
			return errorf("the table has more than %d cells", maxCells)
		case row.cells == nil && row.wrong == "":
			return nil
		}
		return add(row)
	}
	read := func(d *xml.Decoder, start *xml.StartElement) error {
		switch start.Name.Local {
		case "mergeCell":
			return errorf("the cells %s are merged: unmerge them, and give each row its value", attribute(start, "ref"))
		case "row":
			err := end()
			row = sheetRow{number: row.number + 1}
			if n, wrong := strconv.Atoi(attribute(start, "r")); wrong == nil {
				row.number = n
			}
			return err
		case "c":
			var c cell
			if err := d.DecodeElement(&c, start); err != nil {
				return err
			}
			b.placeCell(&row, &c)
		}
		return nil
	}
	return b.readPart(name, maxPart, func(d *xml.Decoder) error {
		if err := eachElement(d, func(start *xml.StartElement) error { return read(d, start) }); err != nil {
			return err
		}
		return end()
	})
}

func attribute(start *xml.StartElement, name string) string {
	for _, a := range start.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// placeCell puts a cell in its column of the row.
func (b *workbook) placeCell(row *sheetRow, c *cell) {
	at := len(row.cells)
	if c.Place != "" {
		at = columnOf(c.Place)
	}
	text, err := b.cellText(c)
	if bad := plaintext.Control([]byte(text)); err == nil && bad != nil {
		err = errors.New("has a control character")
	}
	if err != nil {
		row.wrong = cmp.Or(row.wrong, fmt.Sprintf("cell %s %v", c.Place, err))
		return
	}
	if text == "" {
		return
	}
	for len(row.cells) <= at {
		row.cells = append(row.cells, "")
	}
	row.cells[at] = text
}

// columnOf returns the column of a cell reference such as AB12, from 0. Sheets have
// 16,384 columns.
func columnOf(place string) (n int) {
	for _, r := range place {
		if r < 'A' || r > 'Z' || n > 16384 {
			break
		}
		n = 26*n + int(r-'A') + 1
	}
	return min(max(n, 1), 16384) - 1
}

// cellText returns the text of a cell as displayed, except that dates are in ISO 8601 and
// numbers have a decimal point.
func (b *workbook) cellText(c *cell) (string, error) {
	value := c.Value
	switch {
	case c.Formula != nil && value == "" && c.Type != "str":
		return "", errors.New("has a formula without a result: open the file in Excel or LibreOffice and save it again")
	case c.Type == "inlineStr":
		return c.Inline.String(), nil
	case c.Type == "e":
		return "", fmt.Errorf("has the error %s", value)
	case value == "" || c.Type == "str" || c.Type == "d":
		return value, nil
	case c.Type == "s":
		if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < len(b.strings) {
			return b.strings[n], nil
		}
		return "", errors.New("refers to a text that is missing from the file")
	case c.Type == "b":
		return map[string]string{"0": "FALSE", "1": "TRUE"}[value], nil
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return "", errors.New("is not a number")
	}
	if c.Style >= 0 && c.Style < len(b.formats) && b.formats[c.Style] {
		return b.date(v)
	}
	return strings.Replace(strconv.FormatFloat(v, formatOf(v), -1, 64), "e+", "e", 1), nil
}
