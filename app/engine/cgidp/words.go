package cgidp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// plain writes a number without an exponent.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// decimals writes a number for a table: four decimals, empty if not known.
func decimals(v float64) string {
	if number(v).rounded() == nil {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// withError writes a mean and its error, if it is known.
func withError(mean, se float64) string {
	if math.IsNaN(se) {
		return fmt.Sprintf("%.3f", mean)
	}
	return fmt.Sprintf("%.3f±%.3f", mean, se)
}

// shortDuration writes seconds below two minutes, and whole units above.
func shortDuration(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case seconds < 120:
		return fmt.Sprintf("%.1f s", seconds)
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%.1f days", seconds/86400)
	}
}
