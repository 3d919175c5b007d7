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

// CSV writes a table as RFC 4180 describes it, but with lines that end in a line feed
// alone. A text that a spreadsheet would take for a formula gets an apostrophe in
// front, which makes it text there.
type CSV struct{ to *csv.Writer }

// NewCSV returns a table that is written to b.
func NewCSV(b *bytes.Buffer) CSV { return CSV{csv.NewWriter(b)} }

// Row writes a row of texts, numbers, times and JSON values; nil and the zero time are
// empty cells.
func (c CSV) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = cellText(cell)
	}
	_ = c.to.Write(texts) // a buffer takes everything
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

// valueText returns the text of a JSON value: of a string what it says, of a list or
// an object its JSON.
func valueText(v *strictjson.Value) string {
	switch {
	case v == nil:
		return ""
	case v.Kind == strictjson.String:
		return harmless(v.Text)
	}
	return string(v.Raw)
}

// harmless returns a text that no spreadsheet evaluates.
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
