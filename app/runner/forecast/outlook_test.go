package forecast

import (
	"fmt"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/eta"
	"molrun/app/runner/turns"
)

// line returns the queue of a user with count jobs, of which it lists some.
func line(email string, count, listed int) app.QueueLine {
	q := app.QueueLine{Organization: "lab", Email: email, Count: count}
	for i := range listed {
		q.Jobs = append(q.Jobs, app.Waiting{ID: jobID(email, i), Organization: "lab", Email: email})
	}
	return q
}

func jobID(email string, i int) app.JobID { return app.JobID(fmt.Sprintf("%s%06d", email, i)) }

func idle() State {
	return State{Turns: turns.New(app.Capacity{CPUs: 1}, true, time.Hour), Rest: eta.Turn(true)}
}

func TestJobsThatAreCountedButNotListedHavePlaces(t *testing.T) {
	o := New(idle(), []app.QueueLine{line("ann", 1000, 10), line("bob", 3, 3)})
	for id, want := range map[app.JobID]int{
		jobID("ann", 0): 1, jobID("bob", 0): 2, jobID("ann", 1): 3, jobID("bob", 2): 6, jobID("ann", 9): 13,
	} {
		if q, _, ok := o.Queue(id, time.Time{}); !ok || q.Position != want || q.Of != 1003 {
			t.Errorf("%s: %+v %v, want position %d of 1003", id, q, ok, want)
		}
	}
	if q, _, ok := o.Queue(jobID("ann", 10), time.Time{}); ok {
		t.Errorf("a job that is not listed: %+v", q)
	}
}

func TestJobsThatAreBeingStartedDoNotCount(t *testing.T) {
	s := idle()
	s.Claimed = map[app.JobID]bool{jobID("ann", 0): true, jobID("ann", 2): true}
	o := New(s, []app.QueueLine{line("ann", 4, 4)})
	if q, _, ok := o.Queue(jobID("ann", 3), time.Time{}); !ok || q.Position != 2 || q.Of != 2 {
		t.Errorf("got %+v %v, want position 2 of 2", q, ok)
	}
	if q, _, ok := o.Queue(jobID("ann", 2), time.Time{}); ok {
		t.Errorf("a job that is being started: %+v", q)
	}
}
