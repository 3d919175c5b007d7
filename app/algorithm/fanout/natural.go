package fanout

import (
	"cmp"
	"strings"
)

// compareNatural orders names naturally: lig2 before lig10.
func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		var p, q string
		p, x = cutRun(x)
		q, y = cutRun(y)
		if c := compareRuns(p, q); c != 0 {
			return c
		}
	}
	return cmp.Or(len(x)-len(y), strings.Compare(a, b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// cutRun splits off the leading digits, or everything before the first digit.
func cutRun(s string) (run, rest string) {
	digits, n := isDigit(s[0]), 1
	for n < len(s) && isDigit(s[n]) == digits {
		n++
	}
	return s[:n], s[n:]
}

// compareRuns compares numbers of any length by value, and everything else bytewise.
func compareRuns(p, q string) int {
	if isDigit(p[0]) && isDigit(q[0]) {
		p, q = strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
		if len(p) != len(q) {
			return cmp.Compare(len(p), len(q))
		}
	}
	return strings.Compare(p, q)
}
