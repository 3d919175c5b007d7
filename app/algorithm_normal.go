package app

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// appendNormal appends the form of settings that programs read: compact,
// members sorted, numbers exact and as plain as they can be. It is canonical:
// two texts of one meaning give the same bytes.
func appendNormal(b []byte, v *Value) []byte {
	switch v.Kind {
	case Number:
		return append(b, plainNumber(v.Text)...)
	case Array:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendNormal(b, item)
		}
		return append(b, ']')
	case Object:
		return appendNormalMembers(b, v.Members)
	}
	return v.AppendCanonical(b)
}

func appendNormalMembers(b []byte, members []Member) []byte {
	sorted := slices.SortedFunc(slices.Values(members), func(x, y Member) int { return cmp.Compare(x.Name, y.Name) })
	b = append(b, '{')
	for i, m := range sorted {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, m.Name), ':')
		b = appendNormal(b, m.Value)
	}
	return append(b, '}')
}

// plainNumber writes a JSON number exactly and as people do: 1e6 is 1000000
// and 5.0 is 5, so that programs that read digits only understand it too;
// an exponent appears where there would be many zeros.
func plainNumber(text string) string {
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
