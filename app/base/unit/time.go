package unit

import (
	"time"
)

// Time is a time as the wire writes it: UTC, to the millisecond.
type Time struct{ time.Time }

// TimeLayout is the form of every time on the wire.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// At returns t in the precision of the wire.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// MarshalJSON writes the time in TimeLayout.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(make([]byte, 0, 26), `"`+TimeLayout+`"`), nil
}
