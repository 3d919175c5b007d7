package app_test

import (
	"fmt"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestReasonOfALostAttemptIsPartOfASentence(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "a", `{}`)
	interrupted := func() app.Ending {
		return app.Ending{Outcome: &app.Outcome{Cause: app.CauseInterrupted, Message: "The job was interrupted because the machine shut down; the program did not fail."}}
	}
	s.Run(j.ID, interrupted())
	must.Equal(t, "why the job waits", s.job(ann, "a").StatusReason, "attempt 1 was lost (The job was interrupted because the machine shut down; the program did not fail); waiting for the next attempt")
	s.Run(j.ID, interrupted())
	want := "The job was lost: The job was interrupted because the machine shut down; the program did not fail. Retry it to run it again."
	if got := s.job(ann, "a").Failure; got == nil || got.Message != want {
		t.Errorf("failure %+v, want %q", got, want)
	}
}

func TestLostAttemptsAreRetriedAndFailedOnesAreNot(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "lost", `{}`)
	s.Run(j.ID, app.Ending{Lost: "the machine was restarted"})
	if got := s.job(ann, "lost"); got.Status != app.Queued || got.Attempts != 1 || got.StatusReason == "" {
		t.Errorf("after a lost attempt: %s, %d attempts, reason %q; want QUEUED with a reason", got.Status, got.Attempts, got.StatusReason)
	}
	s.Run(j.ID, app.Ending{Lost: "the machine was restarted"})
	if got := s.job(ann, "lost"); got.Status != app.Failed || got.Failure.Code != app.FailedLost || got.Attempts != 2 {
		t.Errorf("after two lost attempts with one retry: %s, %d attempts, %+v; want FAILED as LOST", got.Status, got.Attempts, got.Failure)
	}
	s.Run(s.submit(ann, "failed", `{}`).ID, failure())
	if got := s.job(ann, "failed"); got.Status != app.Failed || got.Attempts != 1 {
		t.Errorf("after a failed attempt: %s, %d attempts; want FAILED after 1", got.Status, got.Attempts)
	}
}

func TestRetryRequiresAFailedJob(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "a", `{}`)
	wantCode(t, "retry a queued job", must.Error2(s.Jobs.Retry(t.Context(), ann, "a")), fault.JobNotFailed)
	s.Run(j.ID, failure())
	rec, err := s.Jobs.Retry(t.Context(), ann, "a")
	must.OK(t, err)
	if got := decode(t, rec); got.Status != app.Queued || got.Failure != nil || !got.CompletedAt.IsZero() {
		t.Errorf("after retry: %s", rec)
	}
	s.Run(j.ID, success())
	if got := s.job(ann, "a"); got.Status != app.Completed || got.Attempts != 2 || *got.ResultBytes != 7 {
		t.Errorf("after the second attempt: %+v", got)
	}
	wantCode(t, "retry a completed job", must.Error2(s.Jobs.Retry(t.Context(), ann, "a")), fault.JobNotFailed)
}

func TestCancelFailsAQueuedJobAndStopsARunningOne(t *testing.T) {
	s := newSite(t)
	s.submit(ann, "queued", `{}`)
	running := s.Start(s.submit(ann, "running", `{}`).ID)
	for _, name := range []string{"queued", "running", "running"} {
		s.cancel(ann, name)
	}
	s.wantStandings("after cancel", map[string]string{"queued": "FAILED STOPPED"})
	must.Equal(t, "a running job after cancel", s.job(ann, "running").Status, app.Running)
	stopped := app.Ending{Outcome: &app.Outcome{Cause: app.CauseStopped, StartedAt: s.Now(), EndedAt: s.Now()}}
	must.OK(t, s.Runs.Finish(t.Context(), running.ID, 1, stopped))
	s.wantStandings("stopped", map[string]string{"running": "FAILED STOPPED"})
}

// TestTimesOfAJobAreInOrder runs attempts on machines with wrong clocks.
func TestTimesOfAJobAreInOrder(t *testing.T) {
	s := newSite(t)
	for name, wrong := range map[string]time.Duration{"behind": -time.Hour, "right": 0, "ahead": time.Hour} {
		for _, lost := range []bool{false, true} {
			j := s.submit(ann, fmt.Sprint(name, lost), `{}`)
			must.OK(t, must.Error3(s.Runs.Claim(t.Context(), j.ID, placement.Devices{}, app.ClaimLimit{})))
			start := s.Now().Add(wrong)
			must.OK(t, s.Runs.Started(t.Context(), j.ID, 1, start, app.ClusterJob{}))
			if got := s.job(ann, j.Name); got.StartedAt.Before(j.CreatedAt.Time) {
				t.Errorf("clock %s: created at %v, started at %v", name, j.CreatedAt, got.StartedAt)
			}
			e := app.Ending{Lost: "its node went down"}
			if lost { // the lost attempt is not repeated
				s.cancel(ann, j.Name)
			} else {
				e = success()
				e.Outcome.StartedAt, e.Outcome.EndedAt = start, start.Add(time.Minute)
			}
			must.OK(t, s.Runs.Finish(t.Context(), j.ID, 1, e))
			got := s.job(ann, j.Name)
			if got.CompletedAt.Before(got.StartedAt.Time) || got.StartedAt.Before(j.CreatedAt.Time) {
				t.Errorf("clock %s, lost %v: created at %v, started at %v, finished at %v", name, lost, j.CreatedAt, got.StartedAt, got.CompletedAt)
			}
			if took := got.CompletedAt.Sub(got.StartedAt.Time); !lost && (took != time.Minute || got.Metrics.RunSeconds != 60) {
				t.Errorf("clock %s: it ran for %v, %v s in its metrics", name, took, got.Metrics.RunSeconds)
			}
		}
	}
}

func TestOnlyOwnersAndAdminsMayChangeAJob(t *testing.T) {
	s := newSite(t)
	s.Run(s.submit(ann, "a", `{}`).ID, failure())
	for name, change := range map[string]func(by app.Caller) error{
		"cancel": func(by app.Caller) error { _, err := s.Jobs.Cancel(t.Context(), by, "a"); return err },
		"retry":  func(by app.Caller) error { _, err := s.Jobs.Retry(t.Context(), by, "a"); return err },
		"label":  func(by app.Caller) error { _, err := s.Jobs.Label(t.Context(), by, "a", app.Labels{}, nil); return err },
		"pin":    func(by app.Caller) error { _, err := s.Jobs.Pin(t.Context(), by, "a"); return err },
		"unpin":  func(by app.Caller) error { _, err := s.Jobs.Unpin(t.Context(), by, "a"); return err },
		"delete": func(by app.Caller) error { return s.Jobs.Delete(t.Context(), by, "a") },
	} {
		wantCode(t, name+" by another member", change(bob), fault.Forbidden)
		wantCode(t, name+" by an admin of another organization", change(eve), fault.NotFound)
	}
	s.retry(chief, "a")
}

func TestPinRecordsWhoPinnedAJobFirst(t *testing.T) {
	s := newSite(t)
	id := s.submit(ann, "a", `{}`).ID
	for _, by := range []app.Caller{ann, chief} {
		rec, err := s.Jobs.Pin(t.Context(), by, "a")
		if err != nil || !decode(t, rec).Pinned {
			t.Errorf("pin by %s: %s, error %v", by.Email, rec, err)
		}
	}
	if p := s.storedJob(id).Private; p.PinnedBy != ann.Email || p.PinnedAt.IsZero() {
		t.Errorf("pinned by %q at %v, want %s", p.PinnedBy, p.PinnedAt, ann.Email)
	}
	s.Run(id, success())
	if !s.job(ann, "a").Pinned {
		t.Error("the job lost its pin when it finished")
	}
	rec, err := s.Jobs.Unpin(t.Context(), chief, "a")
	if err != nil || decode(t, rec).Pinned || s.storedJob(id).Private.PinnedBy != "" {
		t.Errorf("unpin: %s, error %v", rec, err)
	}
}

func TestPinnedJobCanBeDeleted(t *testing.T) {
	s := newSite(t)
	s.Run(s.submit(ann, "a", `{}`).ID, success())
	must.OK(t, must.Error2(s.Jobs.Pin(t.Context(), ann, "a")))
	must.OK(t, s.Jobs.Delete(t.Context(), ann, "a"))
}

// A claimed job can be stopped before the cluster, or its batch's worker, starts it.
func TestStoppedJobSaysThatItHadNotStarted(t *testing.T) {
	s := newSite(t)
	s.submit(ann, "a", `{}`)
	j, _, err := s.Runs.Claim(t.Context(), s.job(ann, "a").ID, placement.Devices{}, app.ClaimLimit{})
	must.OK(t, err)
	must.OK(t, must.Error2(s.Jobs.Cancel(t.Context(), ann, "a")))
	must.OK(t, s.Runs.Finish(t.Context(), j.ID, 1, app.Ending{Lost: "it was cancelled"}))
	if f := s.job(ann, "a").Failure; f == nil || f.Message != "The job was stopped by "+ann.Email+" before it started." {
		t.Errorf("failure %+v", f)
	}
}
