package tables

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"molrun/app/test/must"
)

const (
	bookXML = `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">%s<sheets>
<sheet name="First" sheetId="1" r:id="rId1"/><sheet name="Hidden" sheetId="2" state="hidden" r:id="rId2"/><sheet name="Third" sheetId="3" r:id="rId3"/></sheets></workbook>`
	relsXML = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Type="x/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="x/worksheet" Target="/xl/worksheets/sheet2.xml"/>
<Relationship Id="rId3" Type="x/worksheet" Target="worksheets/sheet3.xml"/></Relationships>`
	stylesXML  = `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd\.mm\.yyyy"/><numFmt numFmtId="165" formatCode="[Red]0.00&quot; days&quot;"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>`
	stringsXML = `<sst><si><t>name</t></si><si><r><t xml:space="preserve"> α</t></r><r><t>-syn</t></r><rPh sb="0" eb="1"><t>x</t></rPh></si><si><t>a_x000D_b</t></si></sst>`
	emptyXML   = `<worksheet><sheetData><row r="1"><c r="A1" s="1"/></row></sheetData></worksheet>`
)

// book makes an .xlsx file from its parts, keyed by name. Some parts have default
// content.
func book(t testing.TB, sheet string, parts map[string]string) []byte {
	t.Helper()
	all := map[string]string{
		"xl/workbook.xml": fmt.Sprintf(bookXML, ""), "xl/_rels/workbook.xml.rels": relsXML, "xl/styles.xml": stylesXML, "xl/sharedStrings.xml": stringsXML,
		"xl/worksheets/sheet1.xml": `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>` + sheet + `</sheetData></worksheet>`,
		"xl/worksheets/sheet2.xml": `<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>`, "xl/worksheets/sheet3.xml": emptyXML,
	}
	for name, text := range parts {
		all[name] = text
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range all {
		if text == "" {
			continue
		}
		f, err := w.Create(name)
		must.OK(t, err)
		_, err = f.Write([]byte(text))
		must.OK(t, err)
	}
	must.OK(t, w.Close())
	return b.Bytes()
}

// read returns a sheet as text: one line per row, cells separated by a bar, and the
// errors.
func read(data []byte) string {
	s := ReadSheet(data, false, 1000)
	lines := []string{strings.Join(s.Columns, "|")}
	for _, row := range s.Rows {
		lines = append(lines, fmt.Sprintf("%d %s", row.Line, strings.Join(row.Cells, "|")))
	}
	for _, w := range s.Wrong {
		lines = append(lines, w.Error())
	}
	return strings.Join(lines, "\n")
}

func TestWorkbooksAreReadAsPeopleSeeThem(t *testing.T) {
	const head = `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>b</t></is></c></row>`
	date1904 := map[string]string{"xl/workbook.xml": fmt.Sprintf(bookXML, `<workbookPr date1904="1"/>`)}
	for _, tt := range []struct {
		name, rows string
		parts      map[string]string
		want       string
	}{
		{"texts", `<row r="3"><c r="B3" t="s"><v>1</v></c></row><row><c t="s"><v>2</v></c><c t="str"><f>A1</f><v>x</v></c></row>`, nil, "3 |α-syn\n4 a\nb|x"},
		{"numbers", `<row r="2"><c r="A2"><v>1.1000000000000001</v></c><c r="B2"><v>-2E-7</v></c></row><row r="3"><c r="A3"><v>1e6</v></c><c r="B3"><f>1/3</f><v>0.33333333333333331</v></c></row>`, nil, "2 1.1|-2e-07\n3 1000000|0.3333333333333333"},
		{"booleans", `<row r="2"><c r="A2" t="b"><v>1</v></c><c r="B2" t="b"><v>0</v></c></row>`, nil, "2 TRUE|FALSE"},
		{"dates", `<row r="2"><c r="A2" s="1"><v>46355</v></c><c r="B2" s="2"><v>46355.5</v></c></row><row r="3"><c r="A3" s="2"><v>0.25</v></c><c r="B3" s="3"><v>46355</v></c></row>`, nil, "2 2026-11-29|2026-11-29T12:00:00\n3 06:00:00|46355"},
		{"dates of a Mac", `<row r="2"><c r="A2" s="1"><v>44893</v></c><c r="B2" t="d"><v>2026-11-29</v></c></row>`, date1904, "2 2026-11-29|2026-11-29"},
		{"dates before March 1900", `<row r="2"><c r="A2" s="1"><v>59</v></c></row>`, nil, "2 \nline 2: cell A2 is not a readable date: format it as text"},
		{"a formula without a result", `<row r="2"><c r="A2"><f>1+1</f></c></row>`, nil, "2 \nline 2: cell A2 has a formula without a result: open the file in Excel or LibreOffice and save it again"},
		{"an error", `<row r="2"><c r="A2" t="e"><f>1/0</f><v>#DIV/0!</v></c></row>`, nil, "2 \nline 2: cell A2 has the error #DIV/0!"},
		{"merged cells", `</sheetData><mergeCells><mergeCell ref="A2:A3"/></mergeCells><sheetData>`, nil, "the cells A2:A3 are merged: unmerge them, and give each row its value"},
		{"a text that is not there", `<row r="2"><c r="A2" t="s"><v>9</v></c></row>`, nil, "2 \nline 2: cell A2 refers to a text that is missing from the file"},
		{"a second sheet", "", map[string]string{"xl/worksheets/sheet3.xml": `<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>`}, `the sheets "First" and "Third" both have cells: keep only one`},
		{"no styles and texts", `<row r="2"><c r="A2" s="1"><v>5</v></c></row>`, map[string]string{"xl/styles.xml": "", "xl/sharedStrings.xml": ""}, "5"},
		{"too many cells", strings.Repeat(`<row><c r="XFD1" t="b"><v>1</v></c></row>`, 200), nil, "the table has more than 2000000 cells"},
		{"a bomb", strings.Repeat(" ", maxPart), nil, "the workbook has more than 32.0 MiB in xl/worksheets/sheet1.xml; save the table as CSV"},
		{"broken XML", "<row", nil, "this is a damaged .xlsx file, or another kind of file (XML syntax error"},
		{"a document of another program", "", map[string]string{"xl/workbook.xml": ""}, "this is not an Excel workbook (.xlsx); save the table as .xlsx or CSV"},
	} {
		top := head
		if tt.name == "too many cells" {
			top = ""
		}
		must.Contain(t, tt.name, read(book(t, top+tt.rows, tt.parts)), tt.want)
	}
	whole := book(t, head, nil)
	must.Contain(t, "half a file", read(whole[:len(whole)/2]), "this is a damaged .xlsx file")
}

func TestSheetsOfTextSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "\nthe table is empty: its first line names the settings",
		"\xd0\xcf\x11\xe0":         "\nthis is an old Excel file (.xls) or password-protected; save the table as .xlsx or CSV",
		"a,b\n1\n2,3\n":            "a|b\n2 \n3 2|3\nline 2: the line has 1 cell, but the first line names 2; it might be truncated",
		"a,b\n1,2,3\n":             "a|b\n2 \nline 2: the line has 3 cells, but the first line names 2; quote cells that contain a separator",
		"a,,b\n1,,3\n":             "a||b\n2 1||3",
		"a,,b\n1,2,3\n4,5,6\n":     "a||b\n2 1|2|3\n3 4|5|6\nline 1: column 2 has cells but no name (see line 2): name a setting, or remove the column",
		"a,a\n1,2\n":               "a|a\n2 1|2\nline 1: the column \"a\" occurs twice",
		"SEP=;\na;b\n1,5;2\n":      "a|b\n3 1,5|2",
		"\"sep=\t\"\r\na\tb\n1\t":  "a|b\n3 1|",
		"a;\"b;c\"\n\"x\n;y\";“z”": "a|b;c\n2 x\n;y|z",
	} {
		must.Equal(t, fmt.Sprintf("%q", text), read([]byte(text)), want)
	}
}

// FuzzReadSheet checks that any file yields either rows with a cell for each column, or
// error messages.
func FuzzReadSheet(f *testing.F) {
	f.Add([]byte("a;b\r\n1,5;\"x\"\"\"\r\n;\r\n"))
	f.Add([]byte("\xff\xfea\x00\t\x00b\x00"))
	f.Add([]byte("sep=;\na,,\n,b,,\n"))
	f.Add(book(f, `<row r="1"><c r="B1" t="s"><v>0</v></c></row><row r="2"><c r="B2" s="1"><v>46355.5</v></c></row>`, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := ReadSheet(data, false, 50)
		for _, row := range s.Rows {
			if len(row.Cells) != len(s.Columns) && (row.Cells != nil || len(s.Wrong) == 0) {
				t.Errorf("a row of %d cells, %d columns", len(row.Cells), len(s.Columns))
			}
			for _, cell := range row.Cells {
				if !utf8.ValidString(cell) {
					t.Errorf("the cell %q", cell)
				}
			}
		}
		for _, w := range s.Wrong {
			if w.Msg == "" || w.Line < 0 {
				t.Errorf("%+v", w)
			}
		}
	})
}
