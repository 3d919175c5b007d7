package schedule

import "molrun/app"

// userQueue holds the waiting jobs of one user and priority, oldest first.
type userQueue struct {
	user   User
	jobs   []app.Waiting
	oldest app.JobID
}

// cutLevel splits off the jobs with the priority of the first.
func cutLevel(waiting []app.Waiting) (level, rest []app.Waiting) {
	n := 1
	for n < len(waiting) && waiting[n].Priority == waiting[0].Priority {
		n++
	}
	return waiting[:n], waiting[n:]
}

// linesOf splits the jobs of one priority by user.
func linesOf(level []app.Waiting) []*userQueue {
	var lines []*userQueue
	for i, w := range level {
		if i == 0 || userOf(w) != userOf(level[i-1]) {
			lines = append(lines, &userQueue{user: userOf(w), oldest: w.ID})
		}
		last := lines[len(lines)-1]
		last.jobs = append(last.jobs, w)
	}
	return lines
}

// nextLine returns the line that is next by fair share, or nil if all are empty.
func (t *FairShare) nextLine(lines []*userQueue) *userQueue {
	var first *userQueue
	for _, l := range lines {
		if len(l.jobs) > 0 && (first == nil || t.sooner(l, first)) {
			first = l
		}
	}
	return first
}

// sooner orders lines by fewest running jobs of the user, then least recent start, then
// age of the first job.
func (t *FairShare) sooner(a, b *userQueue) bool {
	if x, y := t.running[a.user], t.running[b.user]; x != y {
		return x < y
	}
	if x, y := t.started[a.user], t.started[b.user]; x != y {
		return x < y
	}
	return a.jobs[0].ID < b.jobs[0].ID
}
