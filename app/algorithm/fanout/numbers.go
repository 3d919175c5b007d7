package fanout

import (
	"fmt"
	"regexp"
	"strings"
)

// Numbers as spreadsheets of several countries write them.
var (
	decimalComma = regexp.MustCompile(`^[+-]?\d+,\d+([eE][+-]?\d+)?$`)
	decimalPoint = regexp.MustCompile(`^[+-]?\d+\.\d+([eE][+-]?\d+)?$`)
	thousands    = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}([,.]\d{3})+$`) // or a decimal with three digits
	anyComma     = regexp.MustCompile(`^[+-]?\d[\d.,' \x{a0}\x{202f}]*,[\d.,]*$`)
)

// readNumbers reads numbers with a decimal comma in columns of numbers, if the table may have
// them. A number with several readings is a fault: no number is guessed.
func (e *expansion) readNumbers(s *series, local bool) {
	commas, points := false, false // whether a number shows what the table's decimals are
	e.eachNumber(s, func(_ *entry, _, text string) string {
		commas = commas || decimalComma.MatchString(text) && !thousands.MatchString(text)
		points = points || decimalPoint.MatchString(text) && !thousands.MatchString(text)
		return text
	})
	e.eachNumber(s, func(one *entry, column, text string) string {
		ambiguous := thousands.MatchString(text) && (strings.Contains(text, ",") || local && (commas || !points))
		switch {
		case ambiguous && strings.Count(text, ",")+strings.Count(text, ".") == 1:
			e.rejectEntry(s, one, column, fmt.Sprintf("%q may be read as %s or as %s; write it without a separator of thousands, and a decimal as %s",
				text, strings.NewReplacer(",", ".").Replace(text), strings.NewReplacer(",", "", ".", "").Replace(text), strings.NewReplacer(",", ".").Replace(text)+"0"))
		case local && decimalComma.MatchString(text):
			return strings.Replace(text, ",", ".", 1)
		case ambiguous, anyComma.MatchString(text):
			e.rejectEntry(s, one, column, fmt.Sprintf("%q can't be read as a number; write it with a decimal point and without separators of thousands, such as 1234.5", text))
		}
		return text
	})
}

// eachNumber replaces the cells of columns of numbers.
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
