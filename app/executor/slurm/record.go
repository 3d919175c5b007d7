package slurm

import (
	"strconv"
	"time"
)

// JobRow identifies a task in Slurm forever: the name of a job, without its label, and, for
// an array, the index of the task. Numbers do not: a controller that crashes may assign
// them again.
type JobRow struct {
	Name  string `json:"name"`
	Index int    `json:"index,omitempty"` // from 1; 0: no array
}

// jobRecord is what Slurm says of one job.
type jobRecord struct {
	JobRow
	Title    string // its name in Slurm, with the label
	ID       string // the job's own, also of a task of an array
	Array    string // number of the array
	State    string // the first word
	By       string // of CANCELLED: the number of the user who cancelled it, if known
	Code     int
	Signal   int
	Restarts int

	Submitted, Started, Ended time.Time
	Node, Reason, Partition   string
}

// stateKind returns what the record's state means.
func (r jobRecord) Kind() stateKind { return stateKinds[r.State] }

// Target is how scancel names the job.
func (r jobRecord) Target() string {
	if r.Index == 0 {
		return r.ID
	}
	return r.Array + "_" + strconv.Itoa(r.Index)
}

// Submission is the number that sbatch printed. A task of an array gets its own
// when it starts.
func (r jobRecord) Submission() string {
	if r.Index == 0 {
		return r.ID
	}
	return r.Array
}

// said is the state that Slurm reports, with its reason if there is one.
func (r jobRecord) said() string {
	if r.Reason == "" || r.Reason == "None" {
		return r.State
	}
	return r.State + ", " + r.Reason
}

// Older reports whether the job was submitted before another.
func (r jobRecord) Older(than jobRecord) bool {
	a, errA := strconv.Atoi(r.Submission())
	b, errB := strconv.Atoi(than.Submission())
	if errA != nil || errB != nil {
		return r.Submission() < than.Submission()
	}
	return a < b
}
