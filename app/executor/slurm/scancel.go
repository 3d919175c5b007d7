package slurm

import (
	"slices"
)

// cancelsAtOnce is how many tasks of arrays one scancel ends by their numbers.
const cancelsAtOnce = 200

// jobKey identifies a job by its name and its number.
type jobKey struct {
	JobRow
	target string
}

func keyOf(r jobRecord) jobKey { return jobKey{r.JobRow, r.Target()} }

// scancel is one call of scancel.
type scancel struct {
	how     cancelManner
	name    string // "": scancel does not compare it
	targets []string
}

// array identifies an array in the queue.
type array struct{ name, number string }

// waitingTasks are the tasks of an array that wait in Slurm.
type waitingTasks struct {
	total  int
	wanted []string
}

// scancels returns the calls that cancel those of the wanted jobs which the queue
// shows under their number. Single jobs, running tasks, and all waiting tasks of an
// array are cancelled by name and number. Some waiting tasks of an array can't be,
// so their calls come first, while the queue's answer is fresh.
func scancels(queue, wanted []jobRecord, how cancelManner) []scancel {
	asked := map[jobKey]bool{}
	for _, r := range wanted {
		asked[keyOf(r)] = true
	}
	named, arrays := map[string][]string{}, map[array]waitingTasks{}
	for _, r := range queue {
		queued := r.Kind() == kindQueued
		switch {
		case r.Kind().Over() || how == cancelTerminate && queued:
		case queued && r.Index > 0:
			of := array{r.Title, r.Array}
			arrays[of] = arrays[of].with(r, asked[keyOf(r)])
		case asked[keyOf(r)]:
			named[r.Title] = append(named[r.Title], r.Target())
		}
	}
	var calls []scancel
	for of, w := range arrays {
		calls = append(calls, w.scancels(of, how)...)
	}
	slices.SortFunc(calls, func(a, b scancel) int { return len(a.name) - len(b.name) })
	for name, targets := range named {
		calls = append(calls, scancel{how, name, targets})
	}
	return calls
}

func (w waitingTasks) with(r jobRecord, wanted bool) waitingTasks {
	w.total++
	if wanted {
		w.wanted = append(w.wanted, r.Target())
	}
	return w
}

// scancels returns the calls that cancel the wanted tasks. An array of which one
// task is superfluous was submitted a second time, so that all that wait are.
func (w waitingTasks) scancels(of array, how cancelManner) (calls []scancel) {
	switch {
	case len(w.wanted) == 0:
	case len(w.wanted) == w.total || how == cancelIfQueued:
		return []scancel{{cancelIfQueued, of.name, []string{of.number}}}
	default:
		for piece := range slices.Chunk(w.wanted, cancelsAtOnce) {
			calls = append(calls, scancel{how, "", piece})
		}
	}
	return calls
}
