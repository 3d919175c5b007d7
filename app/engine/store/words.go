package store

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Decimals formats a number for a table with four decimals, or returns "" if it is
// unknown.
func Decimals(v float64) string {
	if Number(v).rounded() == nil {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// WithError formats a mean with its error, if known.
func WithError(mean, se float64) string {
	if math.IsNaN(se) {
		return fmt.Sprintf("%.3f", mean)
	}
	return fmt.Sprintf("%.3f±%.3f", mean, se)
}

// ShortDuration formats a duration: in seconds below two minutes, and in larger units
// above.
func ShortDuration(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case seconds < 120:
		return fmt.Sprintf("%.1f s", seconds)
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%.1f days", seconds/86400)
	}
}

// Warn writes a warning about the results to a job's log, from which it is copied to the
// job's record.
func Warn(log io.Writer, text string) { fmt.Fprintf(log, "molrun:warning %s\n", text) }
