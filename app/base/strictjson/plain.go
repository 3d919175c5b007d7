package strictjson

import (
	"strconv"
	"strings"
)

// AppendPlain appends settings in the form that programs read: compact, with sorted
// members and exact, plain numbers. This form is canonical: documents with the same
// meaning yield the same bytes.
func AppendPlain(b []byte, v *Value) []byte { return v.appendSorted(b, appendPlain) }

// AppendPlainMembers appends an object with these members in the form of AppendPlain.
func AppendPlainMembers(b []byte, members []Member) []byte {
	return appendMembers(b, members, appendPlain)
}

func appendPlain(b []byte, text string) []byte { return append(b, PlainNumber(text)...) }

// PlainNumber writes a JSON number exactly and in plain digits, for programs that read
// only digits: 1e6 becomes 1000000 and 5.0 becomes 5. It uses an exponent only to avoid
// many zeros.
func PlainNumber(text string) string {
	digits, exponent, negative := decimal(text)
	if digits == "" {
		return "0"
	}
	sign := ""
	if negative {
		sign = "-"
	}
	point := len(digits) + exponent // digits before the decimal point
	switch {
	case point > 21 || point < -5:
		mantissa := digits[:1]
		if len(digits) > 1 {
			mantissa += "." + digits[1:]
		}
		return sign + mantissa + "e" + strconv.Itoa(point-1)
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case exponent >= 0:
		return sign + digits + strings.Repeat("0", exponent)
	}
	return sign + digits[:point] + "." + digits[point:]
}
