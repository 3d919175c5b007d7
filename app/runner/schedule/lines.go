package schedule

import "molrun/app"

// line is the waiting jobs of one user and priority, oldest first.
type line struct {
	user   User
	jobs   []app.Waiting
	oldest app.JobID
}

// cutLevel splits off the jobs of the first priority.
func cutLevel(waiting []app.Waiting) (level, rest []app.Waiting) {
	n := 1
	for n < len(waiting) && waiting[n].Priority == waiting[0].Priority {
		n++
	}
	return waiting[:n], waiting[n:]
}

// linesOf splits the jobs of one priority by user.
func linesOf(level []app.Waiting) []*line {
	var lines []*line
	for i, w := range level {
		if i == 0 || userOf(w) != userOf(level[i-1]) {
			lines = append(lines, &line{user: userOf(w), oldest: w.ID})
		}
		last := lines[len(lines)-1]
		last.jobs = append(last.jobs, w)
	}
	return lines
}

// nextLine returns the line that is next by fair share, nil if all are empty.
func (t *FairShare) nextLine(lines []*line) *line {
	var first *line
	for _, l := range lines {
		if len(l.jobs) > 0 && (first == nil || t.sooner(l, first)) {
			first = l
		}
	}
	return first
}

// sooner compares by fewest running, least recently started, then age.
func (t *FairShare) sooner(a, b *line) bool {
	if x, y := t.running[a.user], t.running[b.user]; x != y {
		return x < y
	}
	if x, y := t.started[a.user], t.started[b.user]; x != y {
		return x < y
	}
	return a.jobs[0].ID < b.jobs[0].ID
}
