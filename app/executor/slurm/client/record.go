package client

import (
	"strconv"
	"time"
)

// Row identifies a task in Slurm forever: the name of a job and, for an array,
// the index of the task. Numbers do not: a controller that crashes may assign
// them again.
type Row struct {
	Name  string `json:"name"`
	Index int    `json:"index,omitempty"` // from 1; 0: no array
}

// Record is what Slurm says of one job.
type Record struct {
	Row
	ID       string // the job's own, also of a task of an array
	Array    string // number of the array
	State    string // the first word
	By       string // of CANCELLED: the number of the user who cancelled it, if known
	Code     int
	Signal   int
	Restarts int

	Submitted, Started, Ended time.Time
	Node, Reason              string
}

// Kind returns what the record's state means.
func (r Record) Kind() Kind { return kinds[r.State] }

// Target is how scancel names the job.
func (r Record) Target() string {
	if r.Index == 0 {
		return r.ID
	}
	return r.Array + "_" + strconv.Itoa(r.Index)
}

// Submission is the number that sbatch printed. A task of an array gets its own
// when it starts.
func (r Record) Submission() string {
	if r.Index == 0 {
		return r.ID
	}
	return r.Array
}

// Older reports whether the job was submitted before another.
func (r Record) Older(than Record) bool {
	a, errA := strconv.Atoi(r.Submission())
	b, errB := strconv.Atoi(than.Submission())
	if errA != nil || errB != nil {
		return r.Submission() < than.Submission()
	}
	return a < b
}
