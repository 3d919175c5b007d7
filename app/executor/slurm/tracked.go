package slurm

import (
	"maps"
	"time"

	"molrun/app"
)

// remembered is how long a task is tracked without a Status call for it.
const remembered = time.Hour

// tracked is the state kept for a task between Status calls. Losing it only costs time.
type tracked struct {
	row   TaskID
	found bool // row is set
	asked time.Time

	cluster   app.ClusterJob
	startedAt time.Time // from run.json
	missing   int       // consecutive rounds in which Slurm did not know the task
	missingAt time.Time // start of these rounds
	round     int       // the last round counted
	hopeless  time.Time // since when its wait reason is one that does not resolve on its own
	overAt    time.Time // since when Slurm has reported it as ended
}

// tracker holds the tracked tasks by token.
type tracker map[string]*tracked

// track returns the state kept for a task.
func (k *tracker) track(t app.Task, now time.Time) *tracked {
	if *k == nil {
		*k = tracker{}
	}
	task := (*k)[t.Token]
	if task == nil {
		task = &tracked{}
		(*k)[t.Token] = task
	}
	task.asked = now
	return task
}

func (k *tracker) forget(now time.Time) {
	maps.DeleteFunc(*k, func(_ string, t *tracked) bool { return now.Sub(t.asked) > remembered })
}
