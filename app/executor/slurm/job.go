package slurm

import (
	"encoding/json"
	"strconv"
	"time"

	"molrun/app"
)

// row names a task in Slurm for ever: the name of a job, and where that is an
// array, which of its tasks. Numbers of jobs don't: a controller that crashes
// gives them again.
type row struct {
	Name  string `json:"name"`
	Index int    `json:"index,omitempty"` // from 1 on; 0: no array
}

// handle is what an app.Handle holds.
type handle struct {
	row
	Job string `json:"job,omitempty"` // the number, for people; "" where sbatch gave none
}

func (h handle) encode() app.Handle {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // it has nothing that JSON lacks
	}
	return app.Handle(text)
}

// readHandle gives false where the handle is empty or none of ours.
func readHandle(text app.Handle) (handle, bool) {
	var h handle
	err := json.Unmarshal([]byte(text), &h)
	return h, err == nil && h.Name != ""
}

// numbered gives the handle with the number of the task's job.
func (r row) numbered(id string) handle {
	if id != "" && r.Index > 0 {
		id += "_" + strconv.Itoa(r.Index)
	}
	return handle{row: r, Job: id}
}

// record is what Slurm says of one job.
type record struct {
	row
	id       string // of its own, also where it is one task of an array
	array    string // number of the array
	state    string // the first word
	by       string // of CANCELLED: the number of the user who did it, where known
	code     int
	signal   int
	restarts int

	submitted, started, ended time.Time
	node, reason              string
}

// target is what scancel calls the job.
func (r record) target() string {
	if r.Index == 0 {
		return r.id
	}
	return r.array + "_" + strconv.Itoa(r.Index)
}

// older orders jobs by the numbers that sbatch gave. A task of an array gets one
// of its own when it starts.
func (r record) older(than record) bool {
	a, errA := strconv.Atoi(r.submission())
	b, errB := strconv.Atoi(than.submission())
	if errA != nil || errB != nil {
		return r.submission() < than.submission()
	}
	return a < b
}

func (r record) submission() string {
	if r.Index == 0 {
		return r.id
	}
	return r.array
}
