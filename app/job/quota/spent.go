package quota

import (
	"math"
	"time"

	"molrun/app/base/unit"
)

// SpentAttempts is what the attempts of one job have used. Those that never ran are not in it.
type SpentAttempts struct {
	Ended     int64     `json:"ended"`     // attempts
	RunMillis int64     `json:"runMillis"` // of those whose end is known
	CPUMillis int64     `json:"cpuMillis"` // measured, of the same
	At        unit.Time `json:"at"`        // the last end
}

// Add counts an attempt that ran for some seconds and used CPUs for some. Both are zero
// if the end of the attempt is unknown.
func (a *SpentAttempts) Add(runSeconds, cpuSeconds float64, at unit.Time) {
	a.Ended++
	a.RunMillis += millis(runSeconds)
	a.CPUMillis += millis(cpuSeconds)
	a.At = at
}

// millis converts seconds that are rounded to milliseconds.
func millis(seconds float64) int64 { return int64(math.Round(seconds * 1000)) }

// Spent is sums over jobs and uploads.
type Spent struct {
	Completed, Failed int64 // ends of jobs; one that is tried again may end again
	Attempts          int64 // that ran and ended
	RunMillis         int64
	CPUMillis         int64 // measured
	BookedMillis      int64 // of CPUs: run time by CPUs
	GPUMillis         int64 // run time by GPUs
	ResultBytes       int64 // of jobs that completed
	Uploads           int64 // completed
	UploadBytes       int64 // of them
}

// SpentFields is how many numbers Spent has.
const SpentFields = 10

// Fields returns the numbers, always in the same order.
func (c *Spent) Fields() [SpentFields]*int64 {
	return [SpentFields]*int64{
		&c.Completed, &c.Failed, &c.Attempts, &c.RunMillis, &c.CPUMillis,
		&c.BookedMillis, &c.GPUMillis, &c.ResultBytes, &c.Uploads, &c.UploadBytes,
	}
}

// Add adds what else was spent.
func (c *Spent) Add(d Spent) {
	from := d.Fields()
	for i, to := range c.Fields() {
		*to += *from[i]
	}
}

// Above returns by how much c exceeds d, number by number.
func (c Spent) Above(d Spent) (more Spent) {
	have, other := c.Fields(), d.Fields()
	for i, to := range more.Fields() {
		*to = max(0, *have[i]-*other[i])
	}
	return more
}

// SpentShare is what one user spent in one type of job on one day.
type SpentShare struct {
	Organization, Email string
	Type                string    // "" of uploads
	Day                 time.Time // midnight UTC; of the end, or of the upload's completion
	Spent
}
