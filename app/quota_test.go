package app_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/quota"
	"molrun/app/job/upload"
	"molrun/app/test/must"
)

// withQuota applies the quota to every organization and user.
func (s *site) withQuota(q quota.Quota) *site {
	s.t.Helper()
	quota := func(string, string) quota.Quota { return q }
	s.Service = s.WithOptions(s.Store, app.Options{Quota: quota}, echoFile)
	s.Files = s.newFiles(s.Store, quota)
	return s
}

func wantQuotaExceeded(t *testing.T, what string, err error, sentence string) {
	t.Helper()
	if !errors.Is(err, fault.QuotaExceeded) || !strings.Contains(err.Error(), sentence) {
		t.Errorf("%s: got error %v, want QUOTA_EXCEEDED: %s", what, err, sentence)
	}
}

func TestQueuedQuotaLimitsSubmissionsAndRetries(t *testing.T) {
	s := newSite(t).withQuota(quota.Quota{Queued: 3})
	first := s.submit(ann, "a", `{}`)
	wantQuotaExceeded(t, "a batch beyond the quota", must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "large", `{}`, `{}`, `{}`))), "3 jobs (1 queued, 3 requested)")
	s.submitBatch(ann, "fits", `{}`, `{}`)
	wantCode(t, "a fourth job", must.Error3(s.Jobs.Submit(t.Context(), bob, submission(t, "b", `{}`))), fault.QuotaExceeded)
	if _, created, err := s.Jobs.Submit(t.Context(), ann, submission(t, "a", `{}`)); err != nil || created {
		t.Errorf("a repeated submission at the quota: created %v, error %v; want the job that exists", created, err)
	}
	s.submit(eve, "e", `{}`) // other organizations' quotas are separate
	s.Run(first.ID, failure())
	s.submit(bob, "b", `{}`)
	wantCode(t, "a retry beyond the quota", must.Error2(s.Jobs.Retry(t.Context(), ann, "a")), fault.QuotaExceeded)
	s.cancel(ann, "fits-1")
	s.retry(ann, "a") // within the quota
}

func TestConcurrentSubmissionsStayWithinTheQuota(t *testing.T) {
	s := newSite(t).withQuota(quota.Quota{Queued: 7})
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
		} else {
			wantCode(t, "a submission beyond the quota", err, fault.QuotaExceeded)
		}
	}
	must.Equal(t, "jobs were admitted", admitted, 7)
}

// createAndPut creates an upload and records a PUT of the given size.
func (s *site) createAndPut(by app.Caller, filename string, size int64) (app.UploadID, error) {
	s.t.Helper()
	grant, err := s.Files.Create(s.t.Context(), by, upload.Request{Filename: filename})
	if err != nil {
		return "", err
	}
	return grant.Upload.ID, s.put(grant.Upload.ID, 1, size)
}

func (s *site) put(id app.UploadID, generation int, size int64) error {
	_, err := s.Files.FinishUpload(s.t.Context(), id, app.StoredFile{Generation: generation, Size: size, SHA256: "ab"})
	return err
}

func TestByteQuotaLimitsUploadsAndJobs(t *testing.T) {
	s := newSite(t).withQuota(quota.Quota{Bytes: 1000})
	id, err := s.createAndPut(ann, "a.txt", 600)
	must.OK(t, err)
	wantQuotaExceeded(t, "an upload beyond the quota", must.Error2(s.createAndPut(ann, "b.txt", 401)), `is 1000 bytes (600 bytes used), so "b.txt" with 401 bytes does not fit`)
	must.OK(t, s.put(id, 2, 900)) // replaces the 600 bytes
	s.complete(s.submit(ann, "job", `{}`).ID, 300)
	wantCode(t, "a job above the quota", must.Error3(s.Jobs.Submit(t.Context(), ann, submission(t, "more", `{}`))), fault.QuotaExceeded)
	wantCode(t, "an upload above the quota", must.Error2(s.createAndPut(ann, "c.txt", 0)), fault.QuotaExceeded)
	must.OK(t, s.put(id, 3, 800)) // smaller than before, though still above the quota
	must.OK(t, s.Jobs.Delete(t.Context(), ann, "job"))
	must.OK(t, must.Error2(s.createAndPut(bob, "d.txt", 200))) // after deleting a job
	must.OK(t, s.Files.Delete(t.Context(), ann, string(id)))
	must.OK(t, must.Error2(s.createAndPut(bob, "e.txt", 800))) // after deleting a file
}

func TestConcurrentUploadsShareTheQuota(t *testing.T) {
	s := newSite(t).withQuota(quota.Quota{Bytes: 1000})
	ctx := t.Context()
	var ids [2]app.UploadID
	for i := range ids {
		grant, err := s.Files.Create(ctx, ann, upload.Request{Filename: fmt.Sprint(i, ".txt")})
		must.OK(t, err)
		ids[i] = grant.Upload.ID
	}
	_, first, err := s.Files.BeginUpload(ctx, ids[0], 600)
	must.OK(t, err)
	wantQuotaExceeded(t, "a second upload that does not fit along with the first", must.Error3(s.Files.BeginUpload(ctx, ids[1], 500)), "600 bytes being uploaded")
	_, second, err := s.Files.BeginUpload(ctx, ids[1], -1) // of unknown length
	must.OK(t, err)
	must.OK(t, second.Grow(ctx, 400))
	wantCode(t, "growth beyond what the first leaves", second.Grow(ctx, 401), fault.QuotaExceeded)
	first.Release()
	first.Release()
	must.OK(t, second.Grow(ctx, 1000))
	second.Release()

	// Without reservations, admission depends on the stored usage.
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, id := range ids {
		wg.Go(func() { errs[i] = s.put(id, 1, 600) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("two uploads of 600 bytes finished at once: %v, %v; want one rejected", errs[0], errs[1])
	}
}

// TestPartsShareTheQuota uploads files both whole and in parts at the same time.
func TestPartsShareTheQuota(t *testing.T) {
	s := newSite(t).withQuota(quota.Quota{Bytes: 1000})
	ctx := t.Context()
	var ids [3]app.UploadID
	for i := range ids {
		grant, err := s.Files.Create(ctx, ann, upload.Request{Filename: fmt.Sprint(i, ".txt")})
		must.OK(t, err)
		ids[i] = grant.Upload.ID
	}
	_, whole, err := s.Files.BeginUpload(ctx, ids[0], 600)
	must.OK(t, err)
	wantQuotaExceeded(t, "parts that do not fit along with a whole file", must.Error3(s.Files.BeginPart(ctx, ids[1], 500, 0)), "600 bytes being uploaded")

	// Bytes of parts of unknown length count as they arrive, and are not counted again
	// when they are recorded.
	generation, parts, err := s.Files.BeginPart(ctx, ids[1], -1, 0)
	must.OK(t, err)
	must.OK(t, s.Files.BeginPartial(ctx, ids[1], &app.Partial{Generation: generation}))
	must.OK(t, parts.Grow(ctx, 300))
	wantQuotaExceeded(t, "a whole file that does not fit beside parts", must.Error3(s.Files.BeginUpload(ctx, ids[2], 101)), "900 bytes being uploaded")
	must.OK(t, s.Files.SavePartial(ctx, ids[1], &app.Partial{Generation: generation, Offset: 300}))
	parts.Recorded(300)
	wantQuotaExceeded(t, "more parts", parts.Grow(ctx, 401), "(300 bytes used, 600 bytes being uploaded)")
	must.OK(t, parts.Grow(ctx, 400))
	parts.Release()

	_, again, err := s.Files.BeginPart(ctx, ids[1], 400, 300)
	must.OK(t, err)
	wantQuotaExceeded(t, "a whole file beside parts that go on", must.Error3(s.Files.BeginUpload(ctx, ids[2], 1)), "700 bytes being uploaded")
	again.Release()
	whole.Release()
	_, last, err := s.Files.BeginUpload(ctx, ids[2], 700)
	must.OK(t, err)
	last.Release()
}

// TestReplacedBytesAreCreditedOnce uploads the same file several times concurrently
// through one link.
func TestReplacedBytesAreCreditedOnce(t *testing.T) {
	s := newSite(t).withQuota(quota.Quota{Bytes: 1000})
	id, err := s.createAndPut(ann, "a.txt", 900)
	must.OK(t, err)
	_, first, err := s.Files.BeginUpload(t.Context(), id, 900)
	must.OK(t, err)
	wantQuotaExceeded(t, "a second replacement of the same file", must.Error3(s.Files.BeginUpload(t.Context(), id, 900)), "900 bytes being uploaded")
	first.Release()
	_, second, err := s.Files.BeginUpload(t.Context(), id, 900)
	must.OK(t, err)
	second.Release()
}

// TestUserQuotas gives ann a lower quota than her organization.
func TestUserQuotas(t *testing.T) {
	s := newSite(t)
	of := func(organization, user string) quota.Quota {
		switch {
		case organization != ann.Organization:
		case user == "":
			return quota.Quota{Queued: 4, Bytes: 1000}
		case user == ann.Email:
			return quota.Quota{Queued: 2, Bytes: 100}
		}
		return quota.Quota{}
	}
	s.Service = s.WithOptions(s.Store, app.Options{Quota: of}, echoFile)
	s.Files = s.newFiles(s.Store, of)
	first := s.submit(ann, "a", `{}`)
	s.submit(ann, "b", `{}`)
	wantQuotaExceeded(t, "ann's third job", must.Error3(s.Jobs.Submit(t.Context(), ann, submission(t, "c", `{}`))), `the queue limit of user "ann@lab.example" is 2 jobs (2 queued, 1 requested)`)
	s.submit(bob, "d", `{}`)
	s.submit(bob, "e", `{}`)
	wantQuotaExceeded(t, "the fifth of the organization", must.Error3(s.Jobs.Submit(t.Context(), bob, submission(t, "f", `{}`))), `the queue limit of organization "lab" is 4 jobs (4 queued, 1 requested)`)
	s.Run(first.ID, failure())
	s.submit(ann, "g", `{}`)
	wantCode(t, "a retry", must.Error2(s.Jobs.Retry(t.Context(), ann, "a")), fault.QuotaExceeded)

	wantQuotaExceeded(t, "ann's large file", must.Error2(s.createAndPut(ann, "a.txt", 101)), `user "ann@lab.example" is 100 bytes (0 bytes used)`)
	must.OK(t, must.Error2(s.createAndPut(ann, "b.txt", 100)))
	wantQuotaExceeded(t, "an upload above the quota", must.Error2(s.createAndPut(ann, "c.txt", 1)), `user "ann@lab.example" is 100 bytes (100 bytes used)`)
	must.OK(t, must.Error2(s.createAndPut(bob, "d.txt", 800)))
	wantQuotaExceeded(t, "bob's second file", must.Error2(s.createAndPut(bob, "e.txt", 101)), `organization "lab" is 1000 bytes (900 bytes used)`)

	id, err := s.Files.Create(t.Context(), eve, upload.Request{Filename: "e.txt"})
	must.OK(t, err)
	_, held, err := s.Files.BeginUpload(t.Context(), id.Upload.ID, 900)
	must.OK(t, err)
	held.Release()
}

func TestStorageLeftIsThatOfTheTighterQuota(t *testing.T) {
	s := newSite(t)
	of := map[string]quota.Quota{"": {Bytes: 30 << 20}, ann.Email: {Bytes: 20 << 20}, bob.Email: {}}
	s.Service = s.WithOptions(s.Store, app.Options{Quota: func(_, user string) quota.Quota { return of[user] }}, echoFile)
	s.Files = s.newFiles(s.Store, func(string, string) quota.Quota { return quota.Quota{} })
	left := func(by app.Caller, want int64) {
		t.Helper()
		got, err := s.Runs.StorageShares(t.Context(), []app.Writing{{Organization: by.Organization, Email: by.Email}})
		must.OK(t, err)
		must.Equal(t, "bytes that a job of "+by.Email+" may write", got[0], want)
	}
	left(ann, 20<<20)
	left(bob, 30<<20)
	must.OK(t, must.Error2(s.createAndPut(bob, "a.txt", 15<<20)))
	left(ann, 15<<20)
	must.OK(t, must.Error2(s.createAndPut(bob, "b.txt", 15<<20)))
	left(ann, 1<<20) // minimum for an admitted job
	of[""], of[ann.Email] = quota.Quota{}, quota.Quota{}
	left(ann, 0)
}

// TestRunningJobsShareWhatIsLeft has two jobs of ann and one of bob, whose organization
// also has a quota.
func TestRunningJobsShareWhatIsLeft(t *testing.T) {
	s := newSite(t)
	of := map[string]quota.Quota{"": {Bytes: 100 << 20}, ann.Email: {Bytes: 60 << 20}, bob.Email: {}}
	s.Service = s.WithOptions(s.Store, app.Options{Quota: func(_, user string) quota.Quota { return of[user] }}, echoFile)
	for _, tt := range []struct {
		name          string
		written, want [3]int64 // in MiB, for two jobs of ann and one of bob
	}{
		{"nothing is written", [3]int64{}, [3]int64{60, 60, 100}},
		{"each has what others leave", [3]int64{10, 20, 30}, [3]int64{40, 50, 70}},
		{"the largest of the user is reduced", [3]int64{30, 40, 0}, [3]int64{30, 30, 30}},
		{"the largest of all gives way", [3]int64{10, 10, 90}, [3]int64{10, 10, 80}},
	} {
		var jobs []app.Writing
		for i, by := range []app.Caller{ann, ann, bob} {
			jobs = append(jobs, app.Writing{Organization: by.Organization, Email: by.Email, Bytes: tt.written[i] << 20})
		}
		shares, err := s.Runs.StorageShares(t.Context(), jobs)
		must.OK(t, err)
		must.Equal(t, tt.name, [3]int64{shares[0] >> 20, shares[1] >> 20, shares[2] >> 20}, tt.want)
	}
}
