package fanout

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"molrun/app/test/must"
)

func utf16Of(text string, order binary.AppendByteOrder) string {
	b := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// windowsOf encodes characters below U+0100 as Windows-1252.
func windowsOf(text string) string {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return string(b)
}

// TestTablesAreReadAsSpreadsheetsSaveThem reads the same table as saved or pasted from
// various spreadsheets.
func TestTablesAreReadAsSpreadsheetsSaveThem(t *testing.T) {
	const (
		english = "jobName,sequence,size,count\r\nKrüger,DSHAK,7.4,9\r\nb2,\"RHH\r\nGYK\",-0.1,12000\r\n"
		german  = "jobName;sequence;size;count\r\nKrüger;DSHAK;7,4;9\r\nb2;\"RHH\r\nGYK\";-0,1;12000\r\n"
	)
	tabs := strings.ReplaceAll(german, ";", "\t")
	want := []string{`{"count":9,"sequence":"DSHAK","size":74e-1}`, `{"count":12000,"sequence":"RHH\u000aGYK","size":-1e-1}`}
	for name, text := range map[string]string{
		"Excel in English, CSV UTF-8":           "\uFEFF" + english,
		"Excel in English, CSV":                 windowsOf(english),
		"Excel in German or French, CSV UTF-8":  "\uFEFF" + german,
		"Excel in German or French, CSV":        windowsOf(german),
		"Excel, Unicode text":                   utf16Of(tabs, binary.LittleEndian),
		"big-endian Unicode text":               utf16Of(tabs, binary.BigEndian),
		"text with tabs, Windows":               windowsOf(tabs),
		"Excel workbook":                        must.Workbook(t, []any{"jobName", "sequence", "size", "count"}, []any{"Krüger", "DSHAK", 7.4, 9.0}, []any{}, []any{"b2", "RHH\nGYK", -0.1, 12000.0}),
		"Excel workbook, numbers as texts":      must.Workbook(t, []any{"jobName", "sequence", "size", "count"}, []any{"Krüger", "DSHAK", "7.4", "9"}, []any{"b2", "RHH\nGYK", "−0.1", 12000.0, ""}),
		"with a line that names the separator":  "sep=;\r\n" + german,
		"with sep= in UTF-16":                   utf16Of("sep=\t\r\n"+tabs, binary.LittleEndian),
		"LibreOffice, all texts in quotes":      strings.NewReplacer("\r\n\"b2\"", "\n\"b2\"", "jobName", `"jobName"`, "sequence", `"sequence"`, "Krüger", `"Krüger"`, "b2", `"b2"`).Replace(strings.ReplaceAll(english, "\r\n", "\n")),
		"Numbers in German":                     strings.ReplaceAll(german, "\r\n", "\n"),
		"old Macs":                              strings.ReplaceAll(english, "\r\n", "\r"),
		"mixed ends of lines":                   strings.Replace(strings.Replace(english, "\r\n", "\n", 1), "\r\n", "\r", 1),
		"empty columns and rows at the end":     strings.NewReplacer("count\r\n", "count,,\r\n", ",9\r\n", ",9,,\r\n", "12000\r\n", "12000,,\r\n,,,,,\r\n\r\n,,,,,\r\n").Replace(english),
		"empty columns and rows before":         strings.NewReplacer("jobName,", ",,,,,\r\n,jobName,", "Krüger,", ",Krüger,", "b2,", ",b2,").Replace(english),
		"blanks that don't break":               strings.NewReplacer("Krüger", "\u00a0Krüger\u00a0", "DSHAK", "DSHAK\u202f", "7.4", "\u00a07.4", "size", "size\u00a0").Replace(english),
		"quotes and minus of a text processor":  strings.NewReplacer("Krüger", "„Krüger“", "DSHAK", "“DSHAK”", "-0,1", "−0,1").Replace(german),
		"pasted from a web page":                strings.NewReplacer("\r\n", "\n", "DSHAK", "\u200bDSHAK \u200b").Replace(tabs),
		"pandas, semicolons and decimal points": strings.ReplaceAll(english, ",", ";"),
	} {
		rows, settings, faults := expand(t, texts{"t": text}, `{"each":{"*":"csv:t"}}`)
		must.Equal(t, name+": faults", faults, nil)
		must.Equal(t, name, settings, want)
		must.Equal(t, name+": names", rows.Names, []string{"Krüger", "b2"})
	}
}

// An ambiguous number is an error; its meaning is never guessed.
func TestNumbersWithSeveralReadingsAreFaults(t *testing.T) {
	const (
		two  = `[fanOut each * 2 size]: line 2, column "size": %q is ambiguous: it can mean %s or %s; omit thousands separators, or write a decimal as %s`
		none = `[fanOut each * 2 size]: line 2, column "size": %q is not a number; use a decimal point and no thousands separators, such as 1234.5`
	)
	for _, tt := range []struct{ text, row, fault string }{
		{"size;mode\n7,4;slow\n", `{"mode":"slow","size":74e-1}`, ""},
		{"size;mode\n0,125;slow\n", `{"mode":"slow","size":125e-3}`, ""},
		{"size;mode\n1234,125;slow\n", `{"mode":"slow","size":1234125e-3}`, ""},
		{"size\tmode\n1,5e3\tslow\n", `{"mode":"slow","size":1500}`, ""},
		{"size;sequence\n1;7,4\n", `{"sequence":"7,4","size":1}`, ""}, // text column
		{"size,mode\n1.234,slow\n", `{"mode":"slow","size":1234e-3}`, ""},
		{"size;count\n1.234;1\n2.5;1\n", `{"count":1,"size":1234e-3}`, ""}, // 2.5 proves the decimal point
		{"size;mode\n1,234;slow\n", "", fmt.Sprintf(two, "1,234", "1.234", "1234", "1.2340")},
		{"size;mode\n1.234;slow\n", "", fmt.Sprintf(two, "1.234", "1.234", "1234", "1.2340")},
		{"size;mode\n1.234;slow\n2,5;slow\n", "", fmt.Sprintf(two, "1.234", "1.234", "1234", "1.2340")},
		{"size;mode\n1.234,5;slow\n", "", fmt.Sprintf(none, "1.234,5")},
		{"size;mode\n1,234.5;slow\n", "", fmt.Sprintf(none, "1,234.5")},
		{"size;mode\n1.234.567;slow\n", "", fmt.Sprintf(none, "1.234.567")},
		{"size;mode\n1 234,5;slow\n", "", fmt.Sprintf(none, "1 234,5")},
		{"size,mode\n\"7,4\",slow\n", "", fmt.Sprintf(none, "7,4")},
		{"size,mode\n\"1,234\",slow\n", "", fmt.Sprintf(two, "1,234", "1.234", "1234", "1.2340")},
	} {
		_, settings, faults := expand(t, texts{"t": tt.text}, `{"each":{"*":"csv:t"}}`)
		must.Equal(t, tt.text+" row", settings[0], tt.row)
		if tt.fault != "" {
			must.Equal(t, tt.text+" fault", faults, []string{tt.fault})
		} else {
			must.Equal(t, tt.text+" fault", faults, nil)
		}
	}
}
