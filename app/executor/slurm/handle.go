package slurm

import (
	"encoding/json"
	"strconv"

	"molrun/app"
)

// handle is the content of an app.Handle.
type handle struct {
	TaskID
	Job string `json:"job,omitempty"` // job ID, for users; "" if sbatch printed none
}

func (h handle) encode() app.Handle {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // all fields have a JSON form
	}
	return app.Handle(text)
}

// readHandle returns false if the handle is empty or not ours.
func readHandle(text app.Handle) (handle, bool) {
	var h handle
	err := json.Unmarshal([]byte(text), &h)
	return h, err == nil && h.Name != ""
}

// numbered returns the handle of a row whose Slurm job has this ID.
func numbered(r TaskID, id string) handle {
	if id != "" && r.Index > 0 {
		id += "_" + strconv.Itoa(r.Index)
	}
	return handle{TaskID: r, Job: id}
}
