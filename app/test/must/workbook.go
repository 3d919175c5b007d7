package must

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Workbook returns an .xlsx file with these rows. Numbers are stored as numbers.
func Workbook(t *testing.T, rows ...[]any) string {
	t.Helper()
	var cells strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&cells, `<row r="%d">`, i+1)
		for k, v := range row {
			switch v := v.(type) {
			case string:
				fmt.Fprintf(&cells, `<c r="%c%d" t="inlineStr"><is><t>%s</t></is></c>`, 'A'+k, i+1, v)
			case float64:
				fmt.Fprintf(&cells, `<c r="%c%d"><v>%.17g</v></c>`, 'A'+k, i+1, v)
			}
		}
		cells.WriteString(`</row>`)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"xl/workbook.xml":            `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="T" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml":   `<worksheet><sheetData>` + cells.String() + `</sheetData></worksheet>`,
	} {
		f, err := w.Create(name)
		OK(t, err)
		_, err = f.Write([]byte(text))
		OK(t, err)
	}
	OK(t, w.Close())
	return b.String()
}
