package slurm

import (
	"strconv"
	"time"
)

// TaskID permanently identifies a task in Slurm: the job name, without its label, and the
// task index for an array. Job IDs are not permanent: a controller that crashes can
// assign them again.
type TaskID struct {
	Name  string `json:"name"`
	Index int    `json:"index,omitempty"` // from 1; 0 means no array
}

// jobRecord is Slurm's record of one job.
type jobRecord struct {
	TaskID
	Title    string // its name in Slurm, with the label
	ID       string // the job's own ID, also for an array task
	Array    string // ID of the array
	State    string // first word of the state
	By       string // for CANCELLED, UID of the user who canceled it, if known
	Code     int
	Signal   int
	Restarts int

	Submitted, Started, Ended time.Time
	Node, Reason, Partition   string
}

// Kind returns the meaning of the record's state.
func (r jobRecord) Kind() stateKind { return stateKinds[r.State] }

// Target returns the job's ID for scancel.
func (r jobRecord) Target() string {
	if r.Index == 0 {
		return r.ID
	}
	return r.Array + "_" + strconv.Itoa(r.Index)
}

// Submission returns the ID that sbatch printed. An array task gets its own ID when it
// starts.
func (r jobRecord) Submission() string {
	if r.Index == 0 {
		return r.ID
	}
	return r.Array
}

// stateText returns the state reported by Slurm, with its reason if there is one.
func (r jobRecord) stateText() string {
	if r.Reason == "" || r.Reason == "None" {
		return r.State
	}
	return r.State + ", " + r.Reason
}

// Older reports whether the job was submitted before than.
func (r jobRecord) Older(than jobRecord) bool {
	a, errA := strconv.Atoi(r.Submission())
	b, errB := strconv.Atoi(than.Submission())
	if errA != nil || errB != nil {
		return r.Submission() < than.Submission()
	}
	return a < b
}
