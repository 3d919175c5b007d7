package quota

import (
	"math"
	"time"

	"molrun/app/base/unit"
)

// SpentAttempts is the usage of the attempts of one job. Attempts that never ran are not
// included.
type SpentAttempts struct {
	Ended     int64     `json:"ended"`     // number of attempts
	RunMillis int64     `json:"runMillis"` // of attempts whose end is known
	CPUMillis int64     `json:"cpuMillis"` // measured, of the same attempts
	At        unit.Time `json:"at"`        // the last end
}

// Add counts an attempt with its run time and CPU time. Both are zero if the end of the
// attempt is unknown.
func (a *SpentAttempts) Add(runSeconds, cpuSeconds float64, at unit.Time) {
	a.Ended++
	a.RunMillis += millis(runSeconds)
	a.CPUMillis += millis(cpuSeconds)
	a.At = at
}

// millis converts seconds, already rounded to milliseconds, to milliseconds.
func millis(seconds float64) int64 { return int64(math.Round(seconds * 1000)) }

// Spent is the total usage of jobs and uploads.
type Spent struct {
	Completed, Failed int64 // ended jobs; a retried job can count again
	Attempts          int64 // that ran and ended
	RunMillis         int64
	CPUMillis         int64 // measured
	BookedMillis      int64 // reserved CPU time: run time × CPUs
	GPUMillis         int64 // run time × GPUs
	ResultBytes       int64 // of completed jobs
	Uploads           int64 // completed
	UploadBytes       int64 // of completed uploads
}

// SpentFields is the number of fields of Spent.
const SpentFields = 10

// Fields returns pointers to the fields, always in the same order.
func (c *Spent) Fields() [SpentFields]*int64 {
	return [SpentFields]*int64{
		&c.Completed, &c.Failed, &c.Attempts, &c.RunMillis, &c.CPUMillis,
		&c.BookedMillis, &c.GPUMillis, &c.ResultBytes, &c.Uploads, &c.UploadBytes,
	}
}

// Add adds d to c.
func (c *Spent) Add(d Spent) {
	from := d.Fields()
	for i, to := range c.Fields() {
		*to += *from[i]
	}
}

// Above returns by how much c exceeds d, field by field.
func (c Spent) Above(d Spent) (more Spent) {
	have, other := c.Fields(), d.Fields()
	for i, to := range more.Fields() {
		*to = max(0, *have[i]-*other[i])
	}
	return more
}

// SpentShare is the usage of one user for one type of job on one day.
type SpentShare struct {
	Organization, Email string
	Type                string    // "" for uploads
	Day                 time.Time // midnight UTC; day of the end, or of the upload's completion
	Spent
}
