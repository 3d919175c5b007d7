package slurm

import (
	"slices"
)

// cancelsAtOnce is how many array tasks one scancel call cancels by ID.
const cancelsAtOnce = 200

// jobKey identifies a job by name and ID.
type jobKey struct {
	TaskID
	target string
}

func keyOf(r jobRecord) jobKey { return jobKey{r.TaskID, r.Target()} }

// scancel is one call of scancel.
type scancel struct {
	how     cancelManner
	name    string // "" if scancel must not compare it
	targets []string
}

// array identifies an array in the queue.
type array struct{ name, number string }

// waitingTasks are the tasks of an array that are queued in Slurm.
type waitingTasks struct {
	total  int
	wanted []string
}

// scancels returns the calls that cancel the wanted jobs listed in the queue with their
// ID. Single jobs, running tasks, and all waiting tasks of an array are canceled by name
// and ID. The name can't be compared when only some waiting tasks of an array are
// canceled, so those calls come first, while the queue listing is fresh.
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

// scancels returns the calls that cancel the wanted tasks. If one task of an array is
// superfluous, the array was submitted twice, so all its waiting tasks are superfluous.
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
