package slurm

import (
	"encoding/json"
	"strconv"

	"molrun/app"
)

// handle is the content of an app.Handle.
type handle struct {
	JobRow
	Job string `json:"job,omitempty"` // the number, for people; "" where sbatch printed none
}

func (h handle) encode() app.Handle {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // all its fields have a JSON form
	}
	return app.Handle(text)
}

// readHandle returns false where the handle is empty or not ours.
func readHandle(text app.Handle) (handle, bool) {
	var h handle
	err := json.Unmarshal([]byte(text), &h)
	return h, err == nil && h.Name != ""
}

// numbered returns the handle of a row whose job has this number.
func numbered(r JobRow, id string) handle {
	if id != "" && r.Index > 0 {
		id += "_" + strconv.Itoa(r.Index)
	}
	return handle{JobRow: r, Job: id}
}
