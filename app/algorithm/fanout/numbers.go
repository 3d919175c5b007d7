package fanout

import (
	"fmt"
	"regexp"
	"strings"
)

// Number formats of spreadsheets in various locales.
var (
	decimalComma = regexp.MustCompile(`^[+-]?\d+,\d+([eE][+-]?\d+)?$`)
	decimalPoint = regexp.MustCompile(`^[+-]?\d+\.\d+([eE][+-]?\d+)?$`)
	thousands    = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}([,.]\d{3})+$`) // or a decimal with three digits after the separator
	anyComma     = regexp.MustCompile(`^[+-]?\d[\d.,' \x{a0}\x{202f}]*,[\d.,]*$`)
)

// readNumbers converts numbers with a decimal comma in numeric columns, if the table can
// have them. An ambiguous number is an error; its meaning is never guessed.
func (e *expansion) readNumbers(s *series, local bool) {
	commas, points := false, false // whether an unambiguous number shows the decimal separator of the table
	e.eachNumber(s, func(_ *entry, _, text string) string {
		commas = commas || decimalComma.MatchString(text) && !thousands.MatchString(text)
		points = points || decimalPoint.MatchString(text) && !thousands.MatchString(text)
		return text
	})
	e.eachNumber(s, func(one *entry, column, text string) string {
		ambiguous := thousands.MatchString(text) && (strings.Contains(text, ",") || local && (commas || !points))
		switch {
		case ambiguous && strings.Count(text, ",")+strings.Count(text, ".") == 1:
			e.rejectEntry(s, one, column, fmt.Sprintf("%q is ambiguous: it can mean %s or %s; omit thousands separators, or write a decimal as %s",
				text, strings.NewReplacer(",", ".").Replace(text), strings.NewReplacer(",", "", ".", "").Replace(text), strings.NewReplacer(",", ".").Replace(text)+"0"))
		case local && decimalComma.MatchString(text):
			return strings.Replace(text, ",", ".", 1)
		case ambiguous, anyComma.MatchString(text):
			e.rejectEntry(s, one, column, fmt.Sprintf("%q is not a number; use a decimal point and no thousands separators, such as 1234.5", text))
		}
		return text
	})
}

// eachNumber replaces each nonempty cell of a numeric column with the result of read.
func (e *expansion) eachNumber(s *series, read func(one *entry, column, text string) string) {
	for k, p := range s.columns {
		if p == nil || !p.TakesNumbers() {
			continue
		}
		for i := range s.entries {
			if one := &s.entries[i]; !one.faulty && one.cells[k] != "" {
				one.cells[k] = read(one, p.Name, strings.ReplaceAll(one.cells[k], "−", "-"))
			}
		}
	}
}

func (e *expansion) rejectEntry(s *series, one *entry, column, msg string) {
	one.faulty = true
	e.addFault(s, one.line, column, msg)
}
