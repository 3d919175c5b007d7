package slurm

import (
	"maps"
	"time"

	"molrun/app"
)

// remembered is how long a task is remembered that no Status asks for.
const remembered = time.Hour

// tracked is what is remembered of a task from one Status to the next. Losing it
// loses time, nothing else.
type tracked struct {
	row   JobRow
	found bool // row is set
	asked time.Time

	cluster   app.ClusterJob
	startedAt time.Time // from run.json
	missing   int       // consecutive rounds in which Slurm did not know the task
	missingAt time.Time // since when
	round     int       // that was last counted
	hopeless  time.Time // since when it waits for something that will not come
	overAt    time.Time // since when Slurm says that it has ended
}

// tracker holds the tracked tasks by token.
type tracker map[string]*tracked

// track returns what is remembered of a task.
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
