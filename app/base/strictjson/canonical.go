package strictjson

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AppendCanonical appends the canonical form: no white space, members sorted by name,
// numbers as exact decimals. Documents with the same meaning become equal; 2^53 and
// 2^53+1 do not.
func (v *Value) AppendCanonical(b []byte) []byte { return v.appendSorted(b, appendDecimal) }

// appendSorted appends a value without white space, with members sorted by name and
// numbers as written by number.
func (v *Value) appendSorted(b []byte, number func([]byte, string) []byte) []byte {
	switch v.Kind {
	case Bool:
		return append(b, v.Text...)
	case Number:
		return number(b, v.Text)
	case String:
		return AppendQuoted(b, v.Text)
	case Array:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendSorted(b, number)
		}
		return append(b, ']')
	case Object:
		return appendMembers(b, v.Members, number)
	}
	return append(b, "null"...)
}

func appendMembers(b []byte, members []Member, number func([]byte, string) []byte) []byte {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(x, y Member) int { return cmp.Compare(x.Name, y.Name) })
	b = append(b, '{')
	for i, m := range sorted {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendQuoted(b, m.Name), ':')
		b = m.Value.appendSorted(b, number)
	}
	return append(b, '}')
}

// AppendQuoted appends a string and escapes only what JSON requires.
func AppendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	plain := 0 // start of the text that needs no escape
	for i := range len(s) {
		c := s[i]
		if c != '"' && c != '\\' && c >= 0x20 {
			continue
		}
		b = append(b, s[plain:i]...)
		plain = i + 1
		if c < 0x20 {
			b = fmt.Appendf(b, `\u%04x`, c)
		} else {
			b = append(b, '\\', c)
		}
	}
	b = append(b, s[plain:]...)
	return append(b, '"')
}

// appendDecimal writes a number exactly: as an integer of at most 25 digits, otherwise as
// digits and exponent. 10, 1e1 and 10.0 become equal.
func appendDecimal(b []byte, text string) []byte {
	digits, exponent, negative := decimal(text)
	if digits == "" {
		return append(b, '0')
	}
	if negative {
		b = append(b, '-')
	}
	b = append(b, digits...)
	switch {
	case exponent == 0:
		return b
	case exponent > 0 && len(digits)+exponent <= 25:
		return append(b, strings.Repeat("0", exponent)...)
	}
	return strconv.AppendInt(append(b, 'e'), int64(exponent), 10)
}

// decimal splits a JSON number into its significant digits, without zeros at either end,
// and the power of ten by which they are multiplied.
func decimal(text string) (digits string, exponent int, negative bool) {
	text, negative = strings.CutPrefix(text, "-")
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, _ = strconv.Atoi(text[i+1:]) // bounded by smallExponent
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	return trimmed, exponent + len(digits) - len(trimmed), negative
}

// Int returns the value as an integer, also if it is written as 1e3 or 5.0. It returns
// false if the value is not an integer or is outside ±2^53.
func (v *Value) Int() (int64, bool) {
	if v.Kind != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(string(appendDecimal(nil, v.Text)), 10, 64)
	if err != nil || n > 1<<53 || n < -1<<53 {
		return 0, false
	}
	return n, true
}
