package schedule

import (
	"fmt"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

// queueOfUser returns the queue of a user with count jobs, the first listed of them
// individually.
func queueOfUser(email string, count, listed int) app.QueueLine {
	q := app.QueueLine{Organization: "lab", Email: email, Count: count}
	for i := range listed {
		q.Jobs = append(q.Jobs, app.Waiting{ID: jobID(email, i), Organization: "lab", Email: email})
	}
	return q
}

func jobID(email string, i int) app.JobID { return app.JobID(fmt.Sprintf("%s%06d", email, i)) }

func idleQueue() QueueState {
	return QueueState{Share: NewFairShare(app.Capacity{CPUs: 1}, true, time.Hour), Rest: eta.NotTurnYet(true)}
}

func TestJobsThatAreCountedButNotListedHavePlaces(t *testing.T) {
	o := NewQueueForecast(idleQueue(), []app.QueueLine{queueOfUser("ann", 1000, 10), queueOfUser("bob", 3, 3)}, knownHistory{})
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
	s := idleQueue()
	s.Claimed = map[app.JobID]bool{jobID("ann", 0): true, jobID("ann", 2): true}
	o := NewQueueForecast(s, []app.QueueLine{queueOfUser("ann", 4, 4)}, knownHistory{})
	if q, _, ok := o.Queue(jobID("ann", 3), time.Time{}); !ok || q.Position != 2 || q.Of != 2 {
		t.Errorf("got %+v %v, want position 2 of 2", q, ok)
	}
	if q, _, ok := o.Queue(jobID("ann", 2), time.Time{}); ok {
		t.Errorf("a job that is being started: %+v", q)
	}
}

// knownHistory has runs of 10 s for each class except "unknown".
type knownHistory struct{}

func (knownHistory) History(class string) *eta.History {
	if class == "unknown" {
		return nil
	}
	return eta.NewHistory("a", []eta.Run{{Seconds: 10}, {Seconds: 10}, {Seconds: 10}})
}

func (knownHistory) RemainingTime(app.JobID) (seconds float64, basis string, runs bool) {
	return 0, "", false
}

func (q workQueue) of(work eta.Work) app.QueueLine {
	l := app.QueueLine(q)
	for i := range l.Jobs {
		l.Jobs[i].Work, l.Jobs[i].Needs = work, placement.Resources{CPUs: 1}
	}
	return l
}

type workQueue app.QueueLine

func TestOthersWorkIsNotNamed(t *testing.T) {
	mine, theirs := eta.Work{Class: "mine 1 local"}, eta.Work{Class: "theirs 1 local"}
	s := idleQueue()
	s.Running = map[app.JobID]Lease{"r": {Needs: placement.Resources{CPUs: 1}, Work: theirs}}
	s.Share.CountRunning(s.Running["r"])
	o := NewQueueForecast(s, []app.QueueLine{workQueue(queueOfUser("ann", 2, 2)).of(mine), workQueue(queueOfUser("bob", 1, 1)).of(theirs)}, knownHistory{})
	for id, want := range map[app.JobID]eta.Queue{
		jobID("ann", 0): {Position: 1, Of: 3, ETASeconds: 10, ETABasis: "progress and past runs of the jobs before it"},
		jobID("bob", 0): {Position: 2, Of: 3, ETASeconds: 20, ETABasis: "progress and past runs of the jobs before it"},
		jobID("ann", 1): {Position: 3, Of: 3, ETASeconds: 30, ETABasis: "progress and past runs of the jobs before it"},
	} {
		if q, _, _ := o.Queue(id, s.At); q != want {
			t.Errorf("%s: %+v, want %+v", id, q, want)
		}
	}
}

// The simulation must end where a user has no more listed jobs.
func TestForecastEndsWithListedJobs(t *testing.T) {
	work := eta.Work{Class: "a 1 local"}
	o := NewQueueForecast(idleQueue(), []app.QueueLine{workQueue(queueOfUser("ann", 100, 40)).of(work), workQueue(queueOfUser("bob", 30, 30)).of(work)}, knownHistory{})
	first, _, _ := o.Queue(jobID("ann", 0), time.Time{})
	if first.ETASeconds != 1 || first.ETABasis != "a free slot" {
		t.Errorf("the first: %+v", first)
	}
	must.Equal(t, "forecast start times", len(o.starts), 2*(40-ScanDepth)+1)
}
