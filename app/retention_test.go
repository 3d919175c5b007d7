package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/retention"
	"molrun/app/routing"
)

const day = 24 * time.Hour

// policy is what a site lets an organization use and keep.
type policy struct {
	Quota app.Quota
	Rules retention.Rules
}

// keeping gives the site a service with a policy, the same for all.
func (s *site) keeping(p policy) *site {
	s.t.Helper()
	return s.keepingBy(func(string) policy { return p })
}

func (s *site) keepingBy(of func(organization string) policy) *site {
	s.t.Helper()
	a, mistakes := algorithm.Parse("echo.toml", []byte(echoFile))
	for _, m := range mistakes {
		s.t.Fatal(m)
	}
	catalogue, err := algorithm.NewCatalogue([]*algorithm.File{a})
	must(s.t, err)
	quota := func(organization string) app.Quota { return of(organization).Quota }
	s.Service, err = app.NewService(s.store, s.files, catalogue, app.Options{
		Now: s.now, CursorKey: make([]byte, 32), UploadTTL: time.Hour, Quota: quota,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: 8 << 30, Local: true}}},
	})
	must(s.t, err)
	s.Retention = retention.New(s.store, s.files, s.Service.Jobs, retention.Options{
		Now: s.now, Quota: quota, Rules: func(organization string) retention.Rules { return of(organization).Rules },
	})
	return s
}

// finish runs a job to its end and leaves a result of that many bytes.
func (s *site) finish(id app.JobID, bytes int) {
	s.t.Helper()
	e := done()
	e.ResultBytes = int64(bytes)
	s.leave(id, bytes)
	s.run(id, e)
}

// leave puts files into a job's directory.
func (s *site) leave(id app.JobID, bytes int) {
	s.t.Helper()
	path := filepath.Join(s.files.JobDir(id), "result", "out")
	must(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(s.t, os.WriteFile(path, make([]byte, bytes), 0o600))
}

// retain runs a pass of retention and gives the names of what is gone.
func (s *site) retain() (gone []string) {
	s.t.Helper()
	done, err := s.Retention.Run(s.t.Context(), func(e app.Expired) {
		gone = append(gone, strings.Join(append([]string{e.Name}, e.Uploads...), " "))
	})
	must(s.t, err)
	if done.Doubt {
		s.t.Error("the clock is doubted")
	}
	if done.Deleted != len(gone) {
		s.t.Errorf("%d were deleted, %d told", done.Deleted, len(gone))
	}
	return gone
}

// live has retention run every hour for some time, as a service does.
func (s *site) live(d time.Duration) (gone []string) {
	s.t.Helper()
	for ; d > 0; d -= time.Hour {
		s.pass(time.Hour)
		gone = append(gone, s.retain()...)
	}
	return gone
}

// left gives the names of the organization's jobs that are still there, sorted.
func (s *site) left() []string {
	s.t.Helper()
	page, err := s.Jobs.List(s.t.Context(), ann, app.JobQuery{WholeOrganization: true, Limit: 100})
	must(s.t, err)
	names := []string{}
	for _, rec := range page.Records {
		names = append(names, read(s.t, rec).Name)
	}
	slices.Sort(names)
	return names
}

// onDisk gives the IDs of the jobs that have a directory.
func (s *site) onDisk() (ids []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(s.files.JobDir("x")))
	must(s.t, err)
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

func wantSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestRetentionGoesByTheAgeOfEachStatus(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: 3 * day, Failed: day}})
	for _, name := range []string{"completed", "pinned", "failed"} {
		id := s.submit(ann, name, `{}`).ID
		if s.leave(id, 100); name == "failed" {
			s.run(id, broken())
			continue
		}
		s.run(id, done())
	}
	s.submit(ann, "waits", `{}`)
	_, err := s.Jobs.Pin(t.Context(), ann, "pinned")
	must(t, err)
	s.retain()

	wantSame(t, "after a day", s.live(25*time.Hour), []string{"failed"})
	wantSame(t, "after three", s.live(2*day), []string{"completed"})
	wantSame(t, "after a month", s.live(30*day), []string(nil))
	wantSame(t, "left", s.left(), []string{"pinned", "waits"})
	wantSame(t, "on the disk", s.onDisk(), []string{string(s.job(ann, "pinned").ID)})

	_, err = s.Jobs.Unpin(t.Context(), ann, "pinned")
	must(t, err)
	wantSame(t, "once it is unpinned", s.live(time.Hour), []string{"pinned"})
}

func TestRetryStartsTheTimeAnew(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Failed: 2 * day}})
	id := s.submit(ann, "a", `{}`).ID
	s.run(id, broken())
	wantSame(t, "gone", s.live(40*time.Hour), []string(nil))
	_, err := s.Jobs.Retry(t.Context(), ann, "a")
	must(t, err)
	wantSame(t, "while it waits", s.live(3*day), []string(nil))
	s.run(id, broken())
	wantSame(t, "young again", s.live(40*time.Hour), []string(nil))
	wantSame(t, "old again", s.live(10*time.Hour), []string{"a"})
}

func TestRetentionKeepsTheLastOfEachUser(t *testing.T) {
	for perUser, want := range map[bool][]string{true: {"ann1", "ann2", "bob0"}, false: {"ann1", "ann2"}} {
		t.Run(fmt.Sprint("per user ", perUser), func(t *testing.T) {
			s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: time.Hour, Failed: time.Hour, KeepLast: 2, KeepPerUser: perUser}})
			s.run(s.submit(bob, "bob0", `{}`).ID, done())
			for i, end := range []app.Ending{done(), broken(), done()} {
				s.pass(time.Minute)
				s.run(s.submit(ann, fmt.Sprint("ann", i), `{}`).ID, end)
			}
			s.live(6 * time.Hour)
			wantSame(t, "left", s.left(), want)
		})
	}
}

func TestRetentionFreesWhatIsBeyondTheTotal(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Total: 250}})
	for i := range 4 {
		s.pass(time.Minute)
		s.finish(s.submit(ann, fmt.Sprint("job", i), `{}`).ID, 100)
	}
	s.run(s.submit(ann, "failed", `{}`).ID, broken()) // frees nothing
	_, err := s.Jobs.Pin(t.Context(), ann, "job0")
	must(t, err)
	wantSame(t, "gone", s.retain(), []string{"job1", "job2"})
	wantSame(t, "left", s.left(), []string{"failed", "job0", "job3"})
	wantSame(t, "once more", s.retain(), []string(nil))
}

func TestRulesOfOneOrganizationLeaveTheOthersAlone(t *testing.T) {
	s := newSite(t).keepingBy(func(organization string) policy {
		if organization == "other" {
			return policy{}
		}
		return policy{Rules: retention.Rules{Completed: time.Hour}}
	})
	s.run(s.submit(ann, "a", `{}`).ID, done())
	s.run(s.submit(eve, "e", `{}`).ID, done())
	wantSame(t, "gone", s.live(3*time.Hour), []string{"a"})
	if j := s.job(eve, "e"); j.Status != app.Completed {
		t.Errorf("of the other organization: %s", j.Status)
	}
}

func TestUploadsGoWithTheLastJobThatReadThem(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: 2 * day, Uploads: 4 * day}})
	shared, own, unused := s.upload(ann, "shared.txt", "shared"), s.upload(ann, "own.txt", "own"), s.upload(ann, "unused.txt", "x")
	s.run(s.submit(ann, "first", fmt.Sprintf(`{"input":%q}`, shared.ID)).ID, done())
	s.run(s.submit(ann, "alone", fmt.Sprintf(`{"input":%q}`, own.ID)).ID, done())
	s.pass(day)
	s.run(s.submit(ann, "second", fmt.Sprintf(`{"input":%q}`, shared.ID)).ID, done())

	wantSame(t, "after two days", s.live(30*time.Hour), []string{"first", "alone inputs/own.txt"})
	wantSame(t, "after three", s.live(day), []string{"second inputs/shared.txt"})
	wantSame(t, "after five", s.live(2*day), []string{" inputs/unused.txt"})
	for _, u := range []*app.Upload{shared, own, unused} {
		if _, err := os.Stat(s.files.UploadPath(u.ID, u.Generation)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is on the disk: %v", u.Filename, err)
		}
	}
}

func TestInputsOfAPinnedJobStay(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: time.Hour, Uploads: time.Hour}})
	u := s.upload(ann, "in.txt", "hello")
	for _, name := range []string{"kept", "old"} {
		s.run(s.submit(ann, name, fmt.Sprintf(`{"input":%q}`, u.ID)).ID, done())
	}
	_, err := s.Jobs.Pin(t.Context(), ann, "kept")
	must(t, err)
	wantSame(t, "gone", s.live(5*time.Hour), []string{"old"})
	if _, err := os.Stat(s.files.UploadPath(u.ID, u.Generation)); err != nil {
		t.Errorf("the input of a pinned job: %v", err)
	}
}

func TestResultThatAWaitingJobNeedsStays(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: time.Hour}})
	id := s.submit(ann, "source", `{}`).ID
	s.leave(id, 5)
	must(t, os.Rename(filepath.Join(s.files.JobDir(id), "result", "out"), filepath.Join(s.files.JobDir(id), "result", "out.txt")))
	must(t, s.files.WriteManifest(id, &app.Manifest{Files: []app.ManifestFile{{Name: "out.txt", Path: "result/out.txt", Size: 5}}}))
	s.run(id, done())
	reader := s.submit(ann, "reader", `{"input":"job:source/out.txt"}`).ID
	wantSame(t, "while it waits", s.live(5*time.Hour), []string(nil))
	s.run(reader, done())
	wantSame(t, "when it has ended", s.live(time.Hour), []string{"source"})
}

func TestBatchGoesAsAWholeUnlessARowIsPinned(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: time.Hour}})
	for _, name := range []string{"gone", "kept"} {
		_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, name, `{}`, `{}`))
		must(t, err)
		for _, row := range []string{"-1", "-2"} {
			s.finish(s.job(ann, name+row).ID, 10)
		}
	}
	_, err := s.Jobs.Pin(t.Context(), ann, "kept-2")
	must(t, err)
	wantSame(t, "gone", s.live(3*time.Hour), []string{"gone"})
	wantSame(t, "left", s.left(), []string{"kept"})
	if n := len(s.onDisk()); n != 2 {
		t.Errorf("%d jobs are on the disk, want the two rows that are kept", n)
	}
}

func TestRetentionWaitsWhileTheClockIsDoubted(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: 30 * day}})
	s.run(s.submit(ann, "a", `{}`).ID, done())
	wantSame(t, "at first", s.retain(), []string(nil))
	doubtful := func(what string) {
		t.Helper()
		done, err := s.Retention.Run(t.Context(), func(e app.Expired) { t.Errorf("%s: %s is gone", what, e.Name) })
		if err != nil || !done.Doubt {
			t.Errorf("%s: %+v, %v, want doubt", what, done, err)
		}
	}
	restart := func() { s.keeping(policy{Rules: retention.Rules{Completed: 30 * day}}) }

	s.pass(365 * day) // a wrong clock, or a long rest
	restart()
	doubtful("after the leap")
	s.pass(59 * time.Minute)
	doubtful("before the hour is over")
	restart()
	doubtful("a restart begins the hour anew")
	s.pass(-365 * day) // put right
	restart()
	wantSame(t, "put right", s.retain(), []string(nil))
	s.pass(365 * day)
	doubtful("a leap while it runs")
	s.pass(time.Hour)
	wantSame(t, "an hour later", s.retain(), []string{"a"})
	s.pass(time.Hour)
	wantSame(t, "from then on the clock is trusted", s.retain(), []string(nil))
}

func TestRetentionGoesOnAfterACrash(t *testing.T) {
	s := newSite(t).keeping(policy{Rules: retention.Rules{Completed: time.Hour}})
	for i := range 5 {
		s.finish(s.submit(ann, fmt.Sprint("job", i), `{}`).ID, 10)
	}
	s.retain()
	s.pass(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := s.Retention.Run(ctx, func(app.Expired) {
		if n++; n == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 2 {
		t.Fatalf("%d were deleted, %v; want it cut short after two", n, err)
	}
	wantSame(t, "the rest", s.retain(), []string{"job2", "job3", "job4"})
	wantSame(t, "on the disk", s.onDisk(), []string(nil))
}

func TestPinIsForOwnersAndAdminsAndIsOnRecord(t *testing.T) {
	s := newSite(t)
	id := s.submit(ann, "a", `{}`).ID
	if _, err := s.Jobs.Pin(t.Context(), bob, "a"); !errors.Is(err, fault.Forbidden) {
		t.Errorf("by another member: %v", err)
	}
	if _, err := s.Jobs.Pin(t.Context(), eve, "a"); !errors.Is(err, fault.NotFound) {
		t.Errorf("by another organization: %v", err)
	}
	for _, by := range []app.Caller{ann, chief} { // the second changes nothing
		rec, err := s.Jobs.Pin(t.Context(), by, "a")
		if err != nil || !read(t, rec).Pinned {
			t.Errorf("pin: %s, %v", rec, err)
		}
	}
	stored := func() *app.Job {
		var j *app.Job
		must(t, s.store.View(t.Context(), func(tx app.Tx) (err error) { j, err = tx.Job(id); return err }))
		return j
	}
	if j := stored(); j.Private.PinnedBy != ann.Email || j.Private.PinnedAt.IsZero() {
		t.Errorf("on record: %q, %v", j.Private.PinnedBy, j.Private.PinnedAt)
	}
	s.run(id, done())
	if !s.job(ann, "a").Pinned {
		t.Error("the pin is lost when the job ends")
	}
	rec, err := s.Jobs.Unpin(t.Context(), chief, "a")
	if err != nil || read(t, rec).Pinned || stored().Private.PinnedBy != "" {
		t.Errorf("unpin: %s, %v", rec, err)
	}
	must(t, s.Jobs.Delete(t.Context(), ann, "a"))
}

func TestQuotaOfQueuedJobs(t *testing.T) {
	s := newSite(t).keeping(policy{Quota: app.Quota{Queued: 3}})
	first := s.submit(ann, "a", `{}`)
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "large", `{}`, `{}`, `{}`))
	if !errors.Is(err, fault.QuotaExceeded) || !strings.Contains(err.Error(), "has 1, so that 3 more don't fit") {
		t.Errorf("a batch beyond the quota: %v", err)
	}
	_, _, err = s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "fits", `{}`, `{}`))
	must(t, err)
	if _, _, err := s.Jobs.Submit(t.Context(), bob, submission(t, "b", `{}`)); !errors.Is(err, fault.QuotaExceeded) {
		t.Errorf("a fourth job: %v", err)
	}
	if _, created, err := s.Jobs.Submit(t.Context(), ann, submission(t, "a", `{}`)); err != nil || created {
		t.Errorf("a repeat is answered whatever the quota: %v", err)
	}
	if _, _, err := s.Jobs.Submit(t.Context(), eve, submission(t, "e", `{}`)); err != nil {
		t.Errorf("another organization: %v", err)
	}
	s.run(first.ID, broken())
	s.submit(bob, "b", `{}`)
	if _, err := s.Jobs.Retry(t.Context(), ann, "a"); !errors.Is(err, fault.QuotaExceeded) {
		t.Errorf("retry beyond the quota: %v", err)
	}
	_, err = s.Jobs.Cancel(t.Context(), ann, "fits-1")
	must(t, err)
	if _, err := s.Jobs.Retry(t.Context(), ann, "a"); err != nil {
		t.Errorf("retry with room: %v", err)
	}
}

func TestManySubmissionsAtOnceKeepToTheQuota(t *testing.T) {
	s := newSite(t).keeping(policy{Quota: app.Quota{Queued: 7}})
	var wg sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		wg.Go(func() { _, _, errs[i] = s.Jobs.Submit(t.Context(), ann, submission(t, fmt.Sprint("job", i), `{}`)) })
	}
	wg.Wait()
	admitted := 0
	for _, err := range errs {
		if err == nil {
			admitted++
		} else if !errors.Is(err, fault.QuotaExceeded) {
			t.Error(err)
		}
	}
	if admitted != 7 {
		t.Errorf("%d were admitted, want 7", admitted)
	}
}

// put makes an upload and finishes a PUT of that many bytes.
func (s *site) put(by app.Caller, filename string, size int64) (*app.Upload, error) {
	s.t.Helper()
	grant, err := s.Files.Create(s.t.Context(), by, app.UploadRequest{Filename: filename})
	if err != nil {
		return nil, err
	}
	_, err = s.Files.FinishUpload(s.t.Context(), grant.Upload.ID, app.StoredFile{Generation: 1, Size: size, SHA256: "ab"})
	return grant.Upload, err
}

func TestQuotaOfBytes(t *testing.T) {
	s := newSite(t).keeping(policy{Quota: app.Quota{Bytes: 1000}})
	u, err := s.put(ann, "a.txt", 600)
	must(t, err)
	if _, err := s.put(ann, "b.txt", 401); !errors.Is(err, fault.QuotaExceeded) || !strings.Contains(err.Error(), `may store 1000 bytes and stores 600 bytes, so that "b.txt" of 401 bytes does not fit`) {
		t.Errorf("beyond the quota: %v", err)
	}
	_, err = s.Files.FinishUpload(t.Context(), u.ID, app.StoredFile{Generation: 2, Size: 900, SHA256: "ab"})
	must(t, err) // in the place of the 600
	s.finish(s.submit(ann, "job", `{}`).ID, 300)
	if _, _, err := s.Jobs.Submit(t.Context(), ann, submission(t, "more", `{}`)); !errors.Is(err, fault.QuotaExceeded) {
		t.Errorf("a job without room for its result: %v", err)
	}
	if _, err := s.put(ann, "c.txt", 0); !errors.Is(err, fault.QuotaExceeded) {
		t.Errorf("an upload where nothing fits: %v", err)
	}
	_, err = s.Files.FinishUpload(t.Context(), u.ID, app.StoredFile{Generation: 3, Size: 800, SHA256: "ab"})
	if err != nil {
		t.Errorf("what makes use smaller: %v", err)
	}
	must(t, s.Jobs.Delete(t.Context(), ann, "job"))
	if _, err := s.put(bob, "d.txt", 200); err != nil {
		t.Errorf("what fits once the result is deleted: %v", err)
	}
	must(t, s.Files.Delete(t.Context(), ann, string(u.ID)))
	if _, err := s.put(bob, "e.txt", 800); err != nil {
		t.Errorf("what fits once the file is deleted: %v", err)
	}
}

func TestUploadsOnTheirWayShareTheQuota(t *testing.T) {
	s := newSite(t).keeping(policy{Quota: app.Quota{Bytes: 1000}})
	ctx := t.Context()
	var ids [2]app.UploadID
	for i := range ids {
		grant, err := s.Files.Create(ctx, ann, app.UploadRequest{Filename: fmt.Sprint(i, ".txt")})
		must(t, err)
		ids[i] = grant.Upload.ID
	}
	_, first, err := s.Files.BeginUpload(ctx, ids[0], 600)
	must(t, err)
	if _, _, err := s.Files.BeginUpload(ctx, ids[1], 500); !errors.Is(err, fault.QuotaExceeded) || !strings.Contains(err.Error(), "600 bytes are being uploaded") {
		t.Errorf("a second that does not fit beside the first: %v", err)
	}
	_, second, err := s.Files.BeginUpload(ctx, ids[1], -1) // of unknown length
	must(t, err)
	must(t, second.Grow(ctx, 400))
	if err := second.Grow(ctx, 401); !errors.Is(err, fault.QuotaExceeded) {
		t.Errorf("it grows into the first: %v", err)
	}
	first.Release()
	first.Release()
	must(t, second.Grow(ctx, 1000))
	second.Release()

	var wg sync.WaitGroup // what decides is the record
	errs := make([]error, 2)
	for i, id := range ids {
		wg.Go(func() {
			_, errs[i] = s.Files.FinishUpload(ctx, id, app.StoredFile{Generation: 1, Size: 600, SHA256: "ab"})
		})
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("two of 600 bytes at once: %v, %v; want one refused", errs[0], errs[1])
	}
}

// prune gives what a prune tells, page by page.
func (s *site) prune(r retention.PruneRequest) (gone []app.Expired) {
	s.t.Helper()
	for {
		page, err := s.Retention.Prune(s.t.Context(), r)
		must(s.t, err)
		gone = append(gone, page.Jobs...)
		if r.After = page.Next; page.Next == nil {
			return gone
		}
	}
}

func namesOf(gone []app.Expired) []string {
	names := []string{}
	for _, e := range gone {
		names = append(names, strings.Join(append([]string{e.Name}, e.Uploads...), " "))
	}
	return names
}

func TestPruneDeletesWhatItsDryRunTold(t *testing.T) {
	s := newSite(t)
	u := s.upload(ann, "in.txt", "hello")
	reads := fmt.Sprintf(`{"input":%q}`, u.ID)
	s.finish(s.submit(ann, "small", reads).ID, 10)
	s.finish(s.submit(bob, "large", `{}`).ID, 5000)
	failed := s.submit(ann, "failed", reads).ID
	s.leave(failed, 70) // its work directory
	s.run(failed, broken())
	s.finish(s.submit(eve, "foreign", `{}`).ID, 10)
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "batch", reads, reads))
	must(t, err)
	s.finish(s.job(ann, "batch-1").ID, 20)
	s.finish(s.job(ann, "batch-2").ID, 30)
	s.finish(s.submit(ann, "pinned", `{}`).ID, 10)
	_, err = s.Jobs.Pin(t.Context(), ann, "pinned")
	must(t, err)
	s.pass(10 * day)
	s.finish(s.submit(ann, "young", `{}`).ID, 10)
	old := s.now().Add(-5 * day)

	for name, tt := range map[string]struct {
		request retention.PruneRequest
		want    []string
	}{
		"all":             {retention.PruneRequest{}, []string{"small", "large", "failed", "batch inputs/in.txt", "foreign"}},
		"failed":          {retention.PruneRequest{Failed: true}, []string{"failed"}},
		"user":            {retention.PruneRequest{User: bob.Email}, []string{"large"}},
		"organization":    {retention.PruneRequest{Organization: "other"}, []string{"foreign"}},
		"large":           {retention.PruneRequest{LargerThan: 50}, []string{"large", "batch"}},
		"algorithm":       {retention.PruneRequest{Algorithm: "fold"}, []string{}},
		"no organization": {retention.PruneRequest{Organization: "none"}, []string{}},
	} {
		tt.request.EndedBefore, tt.request.DryRun = old, true
		wantSame(t, name, namesOf(s.prune(tt.request)), tt.want)
	}
	wantSame(t, "still there", s.left(), []string{"batch", "failed", "large", "pinned", "small", "young"})

	told := s.prune(retention.PruneRequest{EndedBefore: old, DryRun: true})
	gone := s.prune(retention.PruneRequest{EndedBefore: old})
	if diff := cmp.Diff(told, gone, cmp.AllowUnexported(app.Expired{})); diff != "" {
		t.Errorf("the dry run told otherwise (-told +gone):\n%s", diff)
	}
	bytes := map[string]int64{}
	for _, e := range gone {
		bytes[e.Name] = e.Bytes
	}
	wantSame(t, "bytes", bytes, map[string]int64{"small": 10, "large": 5000, "failed": 70, "batch": 55, "foreign": 10})
	wantSame(t, "left", s.left(), []string{"pinned", "young"})
	if n := len(s.onDisk()); n != 2 {
		t.Errorf("%d jobs are on the disk, want 2", n)
	}
}

func TestPruneGoesOnPageByPage(t *testing.T) {
	s := newSite(t)
	for i := range 203 { // more than a page
		by := ann
		if i%3 == 0 {
			by = eve
		}
		j := s.submit(by, fmt.Sprint("job", i), `{}`)
		_, err := s.Jobs.Cancel(t.Context(), by, j.Name)
		must(t, err)
	}
	for _, dry := range []bool{true, false} {
		first, err := s.Retention.Prune(t.Context(), retention.PruneRequest{EndedBefore: s.now(), DryRun: dry})
		if err != nil || first.Next == nil || len(first.Jobs) == 0 {
			t.Fatalf("first page: %d jobs, %v", len(first.Jobs), err)
		}
		rest := s.prune(retention.PruneRequest{EndedBefore: s.now(), DryRun: dry, After: first.Next})
		if n := len(first.Jobs) + len(rest); n != 203 {
			t.Errorf("dry %v: %d jobs, want 203", dry, n)
		}
	}
}

func TestStorageReportAddsUp(t *testing.T) {
	s := newSite(t).keeping(policy{Quota: app.Quota{Bytes: 1 << 20}})
	s.upload(ann, "in.txt", "hello")
	s.finish(s.submit(ann, "old", `{}`).ID, 100)
	s.pass(40 * day)
	s.finish(s.submit(bob, "new", `{}`).ID, 3000)
	s.run(s.submit(bob, "failed", `{}`).ID, broken())
	s.submit(ann, "waits", `{}`)
	s.finish(s.submit(eve, "foreign", `{}`).ID, 7)
	for by, want := range map[retention.ReportBy][]retention.UsageRow{
		retention.ByOrganization: {
			{Organization: "lab", Jobs: 4, Queued: 1, Files: 1, ResultBytes: 3100, UploadBytes: 5, QuotaBytes: 1 << 20},
			{Organization: "other", Jobs: 1, ResultBytes: 7, QuotaBytes: 1 << 20},
		},
		retention.ByUser: {
			{Organization: "lab", User: bob.Email, Jobs: 2, ResultBytes: 3000},
			{Organization: "lab", User: ann.Email, Jobs: 2, Queued: 1, Files: 1, ResultBytes: 100, UploadBytes: 5},
			{Organization: "other", User: eve.Email, Jobs: 1, ResultBytes: 7},
		},
		retention.ByAlgorithm: {
			{Algorithm: "echo", Jobs: 5, Queued: 1, ResultBytes: 3107},
			{Files: 1, UploadBytes: 5},
		},
		retention.ByAge: {
			{Age: "under 7 days", Jobs: 4, Queued: 1, ResultBytes: 3007},
			{Age: "30 to 89 days", Jobs: 1, Files: 1, ResultBytes: 100, UploadBytes: 5},
		},
	} {
		report, err := s.Retention.Report(t.Context(), by)
		must(t, err)
		for i := range report.Rows {
			report.Rows[i] = retention.UsageRow{ // without what only sorts
				Organization: report.Rows[i].Organization, User: report.Rows[i].User, Algorithm: report.Rows[i].Algorithm,
				Age: report.Rows[i].Age, Jobs: report.Rows[i].Jobs, Queued: report.Rows[i].Queued, Files: report.Rows[i].Files,
				ResultBytes: report.Rows[i].ResultBytes, UploadBytes: report.Rows[i].UploadBytes, QuotaBytes: report.Rows[i].QuotaBytes,
			}
		}
		if diff := cmp.Diff(want, report.Rows, cmp.AllowUnexported(retention.UsageRow{})); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
		if d := report.Disk; d.Size <= 0 || d.Free <= 0 || d.Reserve <= 0 {
			t.Errorf("disk %+v", d)
		}
	}
}
