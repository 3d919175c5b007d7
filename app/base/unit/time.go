package unit

import (
	"time"
)

// Time is a time as in the API: UTC, to the millisecond.
type Time struct{ time.Time }

// TimeLayout is the format of every time in the API.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// At returns t with the precision of the API.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// MarshalJSON writes the time in TimeLayout.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(make([]byte, 0, 26), `"`+TimeLayout+`"`), nil
}
