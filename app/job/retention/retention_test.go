package retention_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/retention"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

const day = fixture.Day

var ann, bob, eve = fixture.Ann, fixture.Bob, fixture.Eve

func TestRetentionDeletesJobsByStatusAndAge(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Completed: 3 * day, Failed: day})
	s.completed(ann, "completed", `{}`, 100)
	pinned := s.completed(ann, "pinned", `{}`, 100)
	s.Fail(s.Submit(ann, "failed", `{}`), map[string]string{"log": "oh\n"})
	s.Submit(ann, "queued", `{}`)
	s.pin("pinned")
	s.retain()

	must.Equal(t, "deleted after a day", s.retainFor(25*time.Hour), []string{"failed"})
	must.Equal(t, "deleted after three days", s.retainFor(2*day), []string{"completed"})
	must.Equal(t, "deleted after a month", s.retainFor(30*day), nil)
	must.Equal(t, "jobs", s.jobNames(), []string{"pinned", "queued"})
	must.Equal(t, "job directories", s.jobDirs(), []app.JobID{pinned})

	must.OK(t, must.Error2(s.Jobs.Unpin(t.Context(), ann, "pinned")))
	must.Equal(t, "deleted after unpin", s.retainFor(time.Hour), []string{"pinned"})
}

func TestRetryRestartsTheRetentionPeriod(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Failed: 2 * day})
	id := s.failed(ann, "a")
	must.Equal(t, "deleted before its time", s.retainFor(40*time.Hour), nil)
	must.OK(t, must.Error2(s.Jobs.Retry(t.Context(), ann, "a")))
	must.Equal(t, "deleted while it is queued", s.retainFor(3*day), nil)
	s.Fail(id, nil)
	must.Equal(t, "deleted before its time since the retry", s.retainFor(40*time.Hour), nil)
	must.Equal(t, "deleted after that", s.retainFor(10*time.Hour), []string{"a"})
}

func TestRetentionKeepsTheNewestJobs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		last    int
		perUser bool
		want    []string
	}{
		{2, true, []string{"ann1", "ann2", "bob0"}},
		{2, false, []string{"ann1", "ann2"}},
		{1, true, []string{"ann2", "bob0"}},
		{0, true, nil},
	} {
		s := keeping(t, retention.Rules{Completed: time.Hour, Failed: time.Hour, KeepLast: tt.last, KeepPerUser: tt.perUser})
		s.completed(bob, "bob0", `{}`, 7)
		s.Advance(time.Minute)
		s.completed(ann, "ann0", `{}`, 7)
		s.Advance(time.Minute)
		s.failed(ann, "ann1")
		s.Advance(time.Minute)
		s.completed(ann, "ann2", `{}`, 7)
		s.retainFor(6 * time.Hour)
		must.Equal(t, fmt.Sprintf("the last %d, per user %t", tt.last, tt.perUser), s.jobNames(), tt.want)
	}
}

func TestRetentionDeletesTheOldestJobsAboveTheTotal(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Total: 250})
	must.Equal(t, "deleted at first", s.retain(), nil)
	s.failed(ann, "failed") // stores nothing
	s.completed(ann, "empty", `{}`, 0)
	s.Fail(s.Submit(ann, "reads", reading(s.Upload(ann, "in.txt", "hello"))), nil)
	for i := range 4 {
		s.Advance(time.Minute)
		s.completed(ann, fmt.Sprint("job", i), `{}`, 100)
	}
	s.pin("job0")
	must.Equal(t, "deleted", s.retain(), []string{"reads inputs/in.txt", "job1", "job2"})
	must.Equal(t, "jobs", s.jobNames(), []string{"empty", "failed", "job0", "job3"})
	must.Equal(t, "deleted by another pass", s.retain(), nil)
	s.completed(ann, "fits", `{}`, 50) // exactly
	must.Equal(t, "deleted at the total", s.retain(), nil)
}

func TestRetentionRulesApplyToTheirOrganizationOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, retention.Options{Rules: func(organization string) retention.Rules {
		if organization == "other" {
			return retention.Rules{}
		}
		return retention.Rules{Completed: time.Hour, Uploads: time.Hour}
	}})
	s.completed(ann, "a", `{}`, 7)
	s.completed(eve, "e", `{}`, 7)
	s.Upload(eve, "e.txt", "hers")
	s.Upload(ann, "a.txt", "hers")
	must.Equal(t, "deleted", s.retainFor(3*time.Hour), []string{"a", " inputs/a.txt"})
	if _, err := s.Jobs.Get(t.Context(), eve, "e", 0); err != nil {
		t.Errorf("the other organization's job: %v", err)
	}
}

func TestRetentionDeletesUploadsWithTheirLastJob(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Completed: 2 * day, Uploads: 4 * day})
	shared, single, unused := s.Upload(ann, "shared.txt", "shared"), s.Upload(ann, "single.txt", "single"), s.Upload(ann, "unused.txt", "x")
	s.completed(ann, "first", reading(shared), 7)
	s.completed(ann, "alone", reading(single), 7)
	s.Advance(day)
	s.completed(ann, "second", reading(shared), 7)

	must.Equal(t, "deleted after two days", s.retainFor(30*time.Hour), []string{"first", "alone inputs/single.txt"})
	must.Equal(t, "deleted after three", s.retainFor(day), []string{"second inputs/shared.txt"})
	must.Equal(t, "deleted after five", s.retainFor(2*day), []string{" inputs/unused.txt"})
	for _, u := range []*app.Upload{shared, single, unused} {
		if _, err := os.Stat(s.Blobs.UploadPath(u.ID, u.Generation)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stat of %s on disk: error %v, want that it does not exist", u.Filename, err)
		}
	}
}

func TestRetentionKeepsTheInputsOfPinnedJobs(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Completed: time.Hour, Uploads: time.Hour})
	u := s.Upload(ann, "in.txt", "hello")
	for _, name := range []string{"pinned", "old"} {
		s.completed(ann, name, reading(u), 7)
	}
	s.pin("pinned")
	must.Equal(t, "deleted", s.retainFor(5*time.Hour), []string{"old"})
	if _, err := os.Stat(s.Blobs.UploadPath(u.ID, u.Generation)); err != nil {
		t.Errorf("the input of a pinned job: %v", err)
	}
}

func TestRetentionKeepsResultsThatUnfinishedJobsRead(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Completed: time.Hour})
	s.completed(ann, "first", `{}`, 5)
	reader := s.Submit(ann, "reader", `{"input":"job:first/out.txt"}`)
	must.Equal(t, "deleted while its reader is queued", s.retainFor(5*time.Hour), nil)
	s.Complete(reader, nil)
	must.Equal(t, "deleted after its reader finished", s.retainFor(time.Hour), []string{"first"})
}

func TestRetentionDeletesABatchAsAWholeUnlessARowIsPinned(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Completed: time.Hour})
	for _, name := range []string{"unpinned", "pinned"} {
		_, rows := s.SubmitBatch(ann, name, `{}`, `{}`)
		for _, row := range rows {
			s.Complete(row, nil)
		}
	}
	s.pin("pinned-2")
	must.Equal(t, "deleted", s.retainFor(3*time.Hour), []string{"unpinned"})
	must.Equal(t, "jobs", s.jobNames(), []string{"pinned"})
	must.Equal(t, "job directories", len(s.jobDirs()), 2)
}

func TestRetentionPausesAfterAClockJump(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Completed: 30 * day})
	s.completed(ann, "a", `{}`, 7)
	must.Equal(t, "deleted at first", s.retain(), nil)
	wantPause := func(when string) {
		t.Helper()
		result, err := s.keeper.DeleteExpired(t.Context(), func(e app.Expired) { t.Errorf("%s, %s was deleted", when, e.Name) })
		if err != nil || !result.Doubt {
			t.Errorf("%s: %+v, error %v; want doubt", when, result, err)
		}
	}

	s.Advance(365 * day) // as if the clock were wrong or the server had been off
	s.restart()
	wantPause("after the jump")
	s.Advance(59 * time.Minute)
	wantPause("within the hour")
	s.restart()
	wantPause("after a restart, which begins the hour again")
	s.Advance(-365 * day)
	s.restart()
	must.Equal(t, "deleted once the clock is corrected", s.retain(), nil)
	s.Advance(365 * day)
	wantPause("after a jump while the service runs")
	for hour := 1; hour < 30; hour++ { // retention advances by a day in each pass
		s.Advance(time.Hour)
		must.Equal(t, fmt.Sprint("deleted ", hour, " hours later"), s.retain(), nil)
	}
	s.Advance(time.Hour)
	must.Equal(t, "deleted 30 hours later", s.retain(), []string{"a"})
	s.Advance(time.Hour)
	must.Equal(t, "deleted by a later pass", s.retain(), nil)
}

func TestRetentionContinuesAfterAnInterruption(t *testing.T) {
	t.Parallel()
	s := keeping(t, retention.Rules{Completed: time.Hour})
	for i := range 5 {
		s.completed(ann, fmt.Sprint("job", i), `{}`, 10)
	}
	s.retain()
	s.Advance(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := s.keeper.DeleteExpired(ctx, func(app.Expired) {
		if n++; n == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 2 {
		t.Fatalf("%d jobs were deleted, error %v; want a cancelled pass after two", n, err)
	}
	must.Equal(t, "deleted by the next pass", s.retain(), []string{"job2", "job3", "job4"})
	must.Equal(t, "job directories", s.jobDirs(), nil)
}
