package store

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Decimals writes a number for a table: four decimals, empty if not known.
func Decimals(v float64) string {
	if Number(v).rounded() == nil {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// WithError writes a mean and its error, if it is known.
func WithError(mean, se float64) string {
	if math.IsNaN(se) {
		return fmt.Sprintf("%.3f", mean)
	}
	return fmt.Sprintf("%.3f±%.3f", mean, se)
}

// ShortDuration writes seconds below two minutes, and whole units above.
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

// Warn says in a job's log what makes the result doubtful, so that the job's record has it, too.
func Warn(log io.Writer, text string) { fmt.Fprintf(log, "molrun:warning %s\n", text) }
