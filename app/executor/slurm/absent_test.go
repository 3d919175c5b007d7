package slurm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

const (
	lostAfter = time.Minute
	late      = time.Hour
)

// unseen is a task that has claimed its attempt, with Slurm's state set by the test.
type unseen struct {
	*Executor
	t     *testing.T
	task  app.Task
	known *tracked
	begin time.Time
}

func newUnseen(t *testing.T) *unseen {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, task.ClaimDir), 0o700))
	u := &unseen{
		t:     t,
		task:  app.Task{Token: "token", Dir: dir},
		known: &tracked{row: TaskID{Name: "molrun-token"}, found: true},
		begin: time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC),
		Executor: &Executor{
			options:     Options{LostAfter: lostAfter, Late: late, Log: func(string, ...any) {}},
			submissions: newSubmissions(),
			lists:       &lists{dir: t.TempDir(), prefix: "molrun"},
		},
	}
	return u
}

// round simulates a round in which Slurm does not know the task.
func (u *unseen) round(after time.Duration) app.TaskState {
	u.t.Helper()
	u.snapshot.round++
	u.snapshot.at = u.begin.Add(after)
	u.snapshot.accounted = map[string]bool{u.known.row.Name: true}
	return u.again()
}

// again queries the status once more in the same round.
func (u *unseen) again() app.TaskState {
	u.t.Helper()
	s, err := u.absent(u.task, u.known)
	must.OK(u.t, err)
	return s.State
}

func (u *unseen) want(what string, got, want app.TaskState) {
	u.t.Helper()
	must.Equal(u.t, what+": state", got, want)
}

func TestTaskIsLostOnlyAfterThreeRoundsWithoutIt(t *testing.T) {
	u := newUnseen(t)
	u.want("first round", u.round(0), app.TaskStarting)
	for range 5 {
		u.want("asked again in the same round", u.again(), app.TaskStarting)
	}
	u.want("second round, long after", u.round(10*lostAfter), app.TaskStarting)
	u.want("third round", u.round(10*lostAfter+time.Second), app.TaskLost)
}

func TestTaskIsLostOnlyAfterTheTimeSinceItWasMissedFirst(t *testing.T) {
	u := newUnseen(t)
	for after := time.Duration(0); after < lostAfter; after += 10 * time.Second {
		u.want(after.String(), u.round(after), app.TaskStarting)
	}
	u.want("the whole time", u.round(lostAfter), app.TaskLost)
}

// TestMissingTimeStartsAtResubmission submits a task a second time; Slurm may
// not show the new job yet.
func TestMissingTimeStartsAtResubmission(t *testing.T) {
	u := newUnseen(t)
	u.round(0)
	u.round(10 * time.Second)
	u.submissions.at[u.known.row.Name] = u.begin.Add(50 * time.Second)
	u.want("a round before it", u.round(40*time.Second), app.TaskStarting)
	must.Equal(t, "rounds count", u.known.missing, 2)
	u.want("the time since it was missed first", u.round(lostAfter), app.TaskStarting)
	u.want("a moment too early", u.round(lostAfter+49*time.Second), app.TaskStarting)
	u.want("the time since it was submitted", u.round(lostAfter+50*time.Second), app.TaskLost)
}

func TestNothingFollowsWhileAccountingDoesNotAnswer(t *testing.T) {
	u := newUnseen(t)
	for i := range 10 {
		u.snapshot.round++
		u.snapshot.at = u.begin.Add(time.Duration(i) * lostAfter)
		u.snapshot.accounted = map[string]bool{}
		u.want("without an answer", u.again(), app.TaskStarting)
	}
	u.snapshot.noAccounting = true // without accounting, squeue is the only source
	for i := 10; i < 12; i++ {
		u.want("first rounds with squeue alone", u.round(time.Duration(i)*lostAfter), app.TaskStarting)
	}
	u.want("third", u.round(12*lostAfter), app.TaskLost)
}

// TestOutcomeMayBeSeenLate has Slurm report the end of a job whose files are not visible
// in the shared directory yet.
func TestOutcomeMayBeSeenLate(t *testing.T) {
	u := newUnseen(t)
	over := func() app.TaskStatus {
		t.Helper()
		s, err := u.over(u.task, u.known, jobRecord{TaskID: u.known.row, State: "COMPLETED"})
		must.OK(t, err)
		return s
	}
	u.want("at once", over().State, app.TaskStarting)
	u.known.overAt = time.Now().Add(-late / 2)
	u.want("half the time", over().State, app.TaskStarting)
	outcome := []byte(`{"protocol":1,"cause":"done","startedAt":"2026-11-20T10:40:00.000Z","endedAt":"2026-11-20T10:41:00.000Z"}`)
	must.OK(t, os.WriteFile(filepath.Join(u.task.Dir, task.OutcomeFile), outcome, 0o600))
	if s := over(); s.State != app.TaskEnded || s.Outcome.Cause != app.CauseDone {
		t.Errorf("with its outcome: %+v", s)
	}
	must.OK(t, os.Remove(filepath.Join(u.task.Dir, task.OutcomeFile)))
	u.known.overAt = time.Now().Add(-2 * late)
	u.want("after the time", over().State, app.TaskLost)
}

func TestMadeOutcomeNeverEndsBeforeItStarts(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 10, minute, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		seen, started, ended time.Time
		wantStart, wantEnd   time.Time
	}{
		"Slurm's own":                {started: at(1), ended: at(2), wantStart: at(1), wantEnd: at(2)},
		"as the task said":           {seen: at(1), started: at(0), ended: at(2), wantStart: at(1), wantEnd: at(2)},
		"clocks that differ":         {seen: at(3), started: at(0), ended: at(2), wantStart: at(3), wantEnd: at(3)},
		"ended before it started":    {started: at(2), ended: at(1), wantEnd: at(1)},
		"ended when it started":      {started: at(2), ended: at(2), wantStart: at(2), wantEnd: at(2)},
		"cancelled before any start": {ended: at(1), wantEnd: at(1)},
	} {
		o := newOutcome(app.CauseStopped, "", jobRecord{Started: tt.started, Ended: tt.ended}, &tracked{startedAt: tt.seen})
		if !o.StartedAt.Equal(tt.wantStart) || !o.EndedAt.Equal(tt.wantEnd) {
			t.Errorf("%s: from %v to %v, want from %v to %v", name, o.StartedAt, o.EndedAt, tt.wantStart, tt.wantEnd)
		}
	}
}
