package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/listing"
	"molrun/app/retention"
)

// withRules gives every organization these retention rules.
func (s *site) withRules(r retention.Rules) *site {
	return s.withRulesOf(func(string) retention.Rules { return r })
}

func (s *site) withRulesOf(of func(organization string) retention.Rules) *site {
	s.Retention = retention.New(s.store, s.files, s.Jobs, retention.Options{Now: s.now, Rules: of})
	return s
}

// retain makes one pass of retention and describes what it deleted.
func (s *site) retain() []string {
	s.t.Helper()
	var deleted []app.Expired
	result, err := s.Retention.Run(s.t.Context(), func(e app.Expired) { deleted = append(deleted, e) })
	must(s.t, err)
	if result.Doubt {
		s.t.Error("retention does not trust the clock")
	}
	if result.Deleted != len(deleted) {
		s.t.Errorf("retention counts %d deletions and reported %d", result.Deleted, len(deleted))
	}
	return describe(deleted)
}

// describe returns the name of each deleted job, with the uploads that were
// deleted with it.
func describe(deleted []app.Expired) (names []string) {
	for _, e := range deleted {
		names = append(names, strings.Join(append([]string{e.Name}, e.Uploads...), " "))
	}
	return names
}

// retainFor lets time pass, with a pass of retention at least every 12 hours.
func (s *site) retainFor(d time.Duration) (deleted []string) {
	s.t.Helper()
	for d > 0 {
		step := min(d, 12*time.Hour)
		s.advance(step)
		deleted = append(deleted, s.retain()...)
		d -= step
	}
	return deleted
}

// jobNames returns the names of ann's organization's jobs, sorted.
func (s *site) jobNames() (names []string) {
	s.t.Helper()
	page, err := s.Lists.Jobs(s.t.Context(), ann, listing.Query{Selection: listing.Selection{WholeOrganization: true}, Limit: 100})
	must(s.t, err)
	for _, rec := range page.Records {
		names = append(names, decode(s.t, rec).Name)
	}
	slices.Sort(names)
	return names
}

// jobDirs returns the IDs of the jobs that have a directory on disk.
func (s *site) jobDirs() (ids []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(s.files.JobDir("x")))
	must(s.t, err)
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

func (s *site) pin(name string) {
	s.t.Helper()
	_, err := s.Jobs.Pin(s.t.Context(), ann, name)
	must(s.t, err)
}

func TestRetentionDeletesJobsByStatusAndAge(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Completed: 3 * day, Failed: day})
	for name, end := range map[string]app.Ending{"completed": success(), "pinned": success(), "failed": failure()} {
		id := s.submit(ann, name, `{}`).ID
		s.writeResult(id, "out", 100)
		s.run(id, end)
	}
	s.submit(ann, "queued", `{}`)
	s.pin("pinned")
	s.retain()

	wantSame(t, "deleted after a day", s.retainFor(25*time.Hour), []string{"failed"})
	wantSame(t, "deleted after three days", s.retainFor(2*day), []string{"completed"})
	wantSame(t, "deleted after a month", s.retainFor(30*day), nil)
	wantSame(t, "jobs", s.jobNames(), []string{"pinned", "queued"})
	wantSame(t, "job directories", s.jobDirs(), []string{string(s.job(ann, "pinned").ID)})

	_, err := s.Jobs.Unpin(t.Context(), ann, "pinned")
	must(t, err)
	wantSame(t, "deleted after unpin", s.retainFor(time.Hour), []string{"pinned"})
}

func TestRetryRestartsTheRetentionPeriod(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Failed: 2 * day})
	id := s.submit(ann, "a", `{}`).ID
	s.run(id, failure())
	wantSame(t, "deleted before its time", s.retainFor(40*time.Hour), nil)
	_, err := s.Jobs.Retry(t.Context(), ann, "a")
	must(t, err)
	wantSame(t, "deleted while it is queued", s.retainFor(3*day), nil)
	s.run(id, failure())
	wantSame(t, "deleted before its time since the retry", s.retainFor(40*time.Hour), nil)
	wantSame(t, "deleted after that", s.retainFor(10*time.Hour), []string{"a"})
}

func TestRetentionKeepsTheNewestJobs(t *testing.T) {
	for perUser, want := range map[bool][]string{true: {"ann1", "ann2", "bob0"}, false: {"ann1", "ann2"}} {
		t.Run(fmt.Sprint("per user ", perUser), func(t *testing.T) {
			s := newSite(t).withRules(retention.Rules{Completed: time.Hour, Failed: time.Hour, KeepLast: 2, KeepPerUser: perUser})
			s.run(s.submit(bob, "bob0", `{}`).ID, success())
			for i, end := range []app.Ending{success(), failure(), success()} {
				s.advance(time.Minute)
				s.run(s.submit(ann, fmt.Sprint("ann", i), `{}`).ID, end)
			}
			s.retainFor(6 * time.Hour)
			wantSame(t, "jobs", s.jobNames(), want)
		})
	}
}

func TestRetentionDeletesTheOldestJobsAboveTheTotal(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Total: 250})
	for i := range 4 {
		s.advance(time.Minute)
		s.complete(s.submit(ann, fmt.Sprint("job", i), `{}`).ID, 100)
	}
	s.run(s.submit(ann, "failed", `{}`).ID, failure()) // stores nothing
	s.pin("job0")
	wantSame(t, "deleted", s.retain(), []string{"job1", "job2"})
	wantSame(t, "jobs", s.jobNames(), []string{"failed", "job0", "job3"})
	wantSame(t, "deleted by another pass", s.retain(), nil)
}

func TestRetentionRulesApplyToTheirOrganizationOnly(t *testing.T) {
	s := newSite(t).withRulesOf(func(organization string) retention.Rules {
		if organization == "other" {
			return retention.Rules{}
		}
		return retention.Rules{Completed: time.Hour}
	})
	s.run(s.submit(ann, "a", `{}`).ID, success())
	s.run(s.submit(eve, "e", `{}`).ID, success())
	wantSame(t, "deleted", s.retainFor(3*time.Hour), []string{"a"})
	if j := s.job(eve, "e"); j.Status != app.Completed {
		t.Errorf("the other organization's job is %s, want COMPLETED", j.Status)
	}
}

func TestRetentionDeletesUploadsWithTheirLastJob(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Completed: 2 * day, Uploads: 4 * day})
	shared, single, unused := s.upload(ann, "shared.txt", "shared"), s.upload(ann, "single.txt", "single"), s.upload(ann, "unused.txt", "x")
	runWith := func(name string, u *app.Upload) {
		s.run(s.submit(ann, name, fmt.Sprintf(`{"input":%q}`, u.ID)).ID, success())
	}
	runWith("first", shared)
	runWith("alone", single)
	s.advance(day)
	runWith("second", shared)

	wantSame(t, "deleted after two days", s.retainFor(30*time.Hour), []string{"first", "alone inputs/single.txt"})
	wantSame(t, "deleted after three", s.retainFor(day), []string{"second inputs/shared.txt"})
	wantSame(t, "deleted after five", s.retainFor(2*day), []string{" inputs/unused.txt"})
	for _, u := range []*app.Upload{shared, single, unused} {
		if _, err := os.Stat(s.files.UploadPath(u.ID, u.Generation)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stat of %s on disk: error %v, want that it does not exist", u.Filename, err)
		}
	}
}

func TestRetentionKeepsTheInputsOfPinnedJobs(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Completed: time.Hour, Uploads: time.Hour})
	u := s.upload(ann, "in.txt", "hello")
	for _, name := range []string{"pinned", "old"} {
		s.run(s.submit(ann, name, fmt.Sprintf(`{"input":%q}`, u.ID)).ID, success())
	}
	s.pin("pinned")
	wantSame(t, "deleted", s.retainFor(5*time.Hour), []string{"old"})
	if _, err := os.Stat(s.files.UploadPath(u.ID, u.Generation)); err != nil {
		t.Errorf("the input of a pinned job: %v", err)
	}
}

func TestRetentionKeepsResultsThatUnfinishedJobsRead(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Completed: time.Hour})
	id := s.submit(ann, "first", `{}`).ID
	s.writeResult(id, "out.txt", 5)
	must(t, s.files.WriteManifest(id, &app.Manifest{Files: []app.ManifestFile{{Name: "out.txt", Path: "result/out.txt", Size: 5}}}))
	s.run(id, success())
	reader := s.submit(ann, "reader", `{"input":"job:first/out.txt"}`).ID
	wantSame(t, "deleted while its reader is queued", s.retainFor(5*time.Hour), nil)
	s.run(reader, success())
	wantSame(t, "deleted after its reader finished", s.retainFor(time.Hour), []string{"first"})
}

func TestRetentionDeletesABatchAsAWholeUnlessARowIsPinned(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Completed: time.Hour})
	for _, name := range []string{"unpinned", "pinned"} {
		s.submitBatch(ann, name, `{}`, `{}`)
		for _, row := range []string{"-1", "-2"} {
			s.complete(s.job(ann, name+row).ID, 10)
		}
	}
	s.pin("pinned-2")
	wantSame(t, "deleted", s.retainFor(3*time.Hour), []string{"unpinned"})
	wantSame(t, "jobs", s.jobNames(), []string{"pinned"})
	if n := len(s.jobDirs()); n != 2 {
		t.Errorf("%d job directories, want those of the two rows that stay", n)
	}
}

func TestRetentionPausesAfterAClockJump(t *testing.T) {
	rules := retention.Rules{Completed: 30 * day}
	s := newSite(t).withRules(rules)
	s.run(s.submit(ann, "a", `{}`).ID, success())
	wantSame(t, "deleted at first", s.retain(), nil)
	wantPause := func(when string) {
		t.Helper()
		result, err := s.Retention.Run(t.Context(), func(e app.Expired) { t.Errorf("%s, %s was deleted", when, e.Name) })
		if err != nil || !result.Doubt {
			t.Errorf("%s: %+v, error %v; want doubt", when, result, err)
		}
	}
	restart := func() { s.withRules(rules) }

	s.advance(365 * day) // the clock is wrong, or the server was off
	restart()
	wantPause("after the jump")
	s.advance(59 * time.Minute)
	wantPause("within the hour")
	restart()
	wantPause("after a restart, which begins the hour again")
	s.advance(-365 * day)
	restart()
	wantSame(t, "deleted once the clock is corrected", s.retain(), nil)
	s.advance(365 * day)
	wantPause("after a jump while the service runs")
	s.advance(time.Hour)
	wantSame(t, "deleted an hour later", s.retain(), []string{"a"})
	s.advance(time.Hour)
	wantSame(t, "deleted by a later pass", s.retain(), nil)
}

func TestRetentionContinuesAfterAnInterruption(t *testing.T) {
	s := newSite(t).withRules(retention.Rules{Completed: time.Hour})
	for i := range 5 {
		s.complete(s.submit(ann, fmt.Sprint("job", i), `{}`).ID, 10)
	}
	s.retain()
	s.advance(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := s.Retention.Run(ctx, func(app.Expired) {
		if n++; n == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 2 {
		t.Fatalf("%d jobs were deleted, error %v; want a cancelled pass after two", n, err)
	}
	wantSame(t, "deleted by the next pass", s.retain(), []string{"job2", "job3", "job4"})
	wantSame(t, "job directories", s.jobDirs(), nil)
}
