package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/test/must"
)

// deaf returns a client of a cluster whose commands do not exist, and counts its calls of
// squeue and sinfo.
func deaf(t *testing.T) (c *client, calls *int) {
	t.Helper()
	calls = new(int)
	return newClient(Options{Path: t.TempDir(), Timeout: time.Minute, Now: func() time.Time {
		*calls++
		return time.Now()
	}}), calls
}

func TestPollingSlowsDownToABoundWhileSqueueFails(t *testing.T) {
	c, _ := deaf(t)
	v := &snapshot{client: c, options: Options{Poll: time.Second}, pace: time.Second}
	for _, want := range []time.Duration{2, 4, maxSlowdown, maxSlowdown} {
		if err := v.listJobs(t.Context()); err == nil || v.pace != want*time.Second {
			t.Errorf("the pace is %v, want %v (%v)", v.pace, want*time.Second, err)
		}
	}
}

// TestSlurmIsAskedSoonerAfterASubmission has a task that Slurm has not reported yet.
func TestSlurmIsAskedSoonerAfterASubmission(t *testing.T) {
	s := newSubmissions()
	e := &Executor{options: Options{Poll: time.Hour}, submissions: s}
	k := &tracked{row: TaskID{Name: "molrun-token"}, found: true}
	for ago, want := range map[time.Duration]bool{0: true, time.Hour: true, 3 * time.Hour: false} {
		s.at[k.row.Name] = time.Now().Add(-ago)
		must.Equal(t, fmt.Sprintf("%v after the submission it is asked soon", ago), e.soon(app.Task{Token: "token"}, k), want)
	}
}

func TestSilentControllerIsAskedForItsNodesMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := deaf(t)
		go (&nodes{client: c}).keepCurrent(t.Context())
		time.Sleep(nodesEvery + time.Second)
		synctest.Wait()
		must.Equal(t, "asked", 1+int(nodesEvery/silentEvery), *calls)
	})
}

func TestSubmissionIsForgottenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubmissions()
		s.recordSubmission("name", "the controller does not respond")
		s.recordSubmission("again", "")
		s.maySubmitAgain("again")
		time.Sleep(remembered - time.Nanosecond)
		s.forget()
		if s.lastSubmitted("name").IsZero() || s.whyPending("name") == "" {
			t.Error("forgotten too early")
		}
		time.Sleep(time.Nanosecond)
		s.forget()
		if !s.lastSubmitted("name").IsZero() || s.whyPending("name") != "" {
			t.Error("not forgotten")
		}
		if s.lastSubmitted("again").IsZero() {
			t.Error("forgotten while it is submitted again")
		}
	})
}

func TestSharedFolderIsSweptEveryHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{SharedDir: t.TempDir(), Path: t.TempDir(), Program: filepath.Join(t.TempDir(), "none")})
		must.OK(t, err)
		defer e.Close()
		must.OK(t, makeDirs(e.options.SharedDir))
		left := e.lists.path(".molrun-left")
		must.OK(t, os.WriteFile(left, nil, 0o600))
		must.OK(t, os.Chtimes(left, time.Time{}, time.Now().Add(-cleanUpAge)))
		time.Sleep(cleanUpEvery - time.Second)
		synctest.Wait()
		if _, err := os.Stat(left); err != nil {
			t.Fatalf("cleaned up too early: %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("what a crash left is there after an hour: %v", err)
		}
	})
}

func TestWhatSlurmSaidLongAgoIsUnknown(t *testing.T) {
	l := &latest{ttl: time.Hour, records: map[string]seenRecord{}}
	l.put("new", jobRecord{ID: "8", State: "RUNNING"}, time.Now())
	l.put("old", jobRecord{ID: "9", State: "RUNNING"}, time.Now().Add(-2*time.Hour))
	for token, want := range map[string]bool{"new": true, "old": false, "none": false} {
		if r, known := l.of(token); known != want || (r.ID != "") != want {
			t.Errorf("%s: job %q, known %v, want %v", token, r.ID, known, want)
		}
	}
}
