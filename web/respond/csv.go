package respond

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// CSV writes a table as in RFC 4180, but ends lines with a line feed only. It puts an
// apostrophe before text that a spreadsheet would treat as a formula, so that the
// spreadsheet treats it as text.
type CSV struct{ to *csv.Writer }

// NewCSV returns a table that is written to b.
func NewCSV(b *bytes.Buffer) CSV { return CSV{csv.NewWriter(b)} }

// Row writes a row of strings, numbers, times and JSON values. nil and the zero time
// become empty cells.
func (c CSV) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = cellText(cell)
	}
	_ = c.to.Write(texts) // writing to a buffer can't fail
	c.to.Flush()
}

func cellText(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case string:
		return harmless(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case unit.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(unit.TimeLayout)
	case *strictjson.Value:
		return valueText(v)
	}
	return harmless(fmt.Sprint(cell))
}

// valueText returns the text of a JSON value: the contents of a string, or the JSON of a
// list or an object.
func valueText(v *strictjson.Value) string {
	switch {
	case v == nil:
		return ""
	case v.Kind == strictjson.String:
		return harmless(v.Text)
	}
	return string(v.Raw)
}

// harmless returns text in a form that no spreadsheet evaluates.
func harmless(text string) string {
	first, _ := utf8.DecodeRuneInString(text)
	if text == "" || !strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) || isNumber(text) {
		return text
	}
	return "'" + text
}

func isNumber(text string) bool {
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return false // such as -Inf
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}
