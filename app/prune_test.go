package app_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/retention"
)

// prune returns what all pages of a prune delete.
func (s *site) prune(r retention.PruneRequest) (deleted []app.Expired) {
	s.t.Helper()
	for {
		page, err := s.Retention.Prune(s.t.Context(), r)
		must(s.t, err)
		deleted = append(deleted, page.Jobs...)
		if r.After = page.Next; page.Next == nil {
			return deleted
		}
	}
}

func TestPruneDeletesWhatItsDryRunReports(t *testing.T) {
	s := newSite(t)
	u := s.upload(ann, "in.txt", "hello")
	withUpload := fmt.Sprintf(`{"input":%q}`, u.ID)
	s.complete(s.submit(ann, "small", withUpload).ID, 10)
	s.complete(s.submit(bob, "large", `{}`).ID, 5000)
	failed := s.submit(ann, "failed", withUpload).ID
	s.writeResult(failed, "out", 70) // stays in its directory
	s.run(failed, failure())
	s.complete(s.submit(eve, "foreign", `{}`).ID, 10)
	s.submitBatch(ann, "batch", withUpload, withUpload)
	s.complete(s.job(ann, "batch-1").ID, 20)
	s.complete(s.job(ann, "batch-2").ID, 30)
	s.complete(s.submit(ann, "pinned", `{}`).ID, 10)
	s.pin("pinned")
	s.advance(10 * day)
	s.complete(s.submit(ann, "young", `{}`).ID, 10)
	fiveDaysAgo := s.now().Add(-5 * day)

	for name, tt := range map[string]struct {
		request retention.PruneRequest
		want    []string
	}{
		"all":                  {retention.PruneRequest{}, []string{"small", "large", "failed", "batch inputs/in.txt", "foreign"}},
		"failed":               {retention.PruneRequest{Failed: true}, []string{"failed"}},
		"user":                 {retention.PruneRequest{User: bob.Email}, []string{"large"}},
		"organization":         {retention.PruneRequest{Organization: "other"}, []string{"foreign"}},
		"large":                {retention.PruneRequest{LargerThan: 50}, []string{"large", "batch"}},
		"another algorithm":    {retention.PruneRequest{Algorithm: "fold"}, nil},
		"another organization": {retention.PruneRequest{Organization: "none"}, nil},
	} {
		tt.request.EndedBefore, tt.request.DryRun = fiveDaysAgo, true
		wantSame(t, "dry run of "+name, describe(s.prune(tt.request)), tt.want)
	}
	wantSame(t, "jobs after the dry runs", s.jobNames(), []string{"batch", "failed", "large", "pinned", "small", "young"})

	reported := s.prune(retention.PruneRequest{EndedBefore: fiveDaysAgo, DryRun: true})
	deleted := s.prune(retention.PruneRequest{EndedBefore: fiveDaysAgo})
	if diff := cmp.Diff(reported, deleted, cmp.AllowUnexported(app.Expired{})); diff != "" {
		t.Errorf("the prune differs from its dry run (-dry run +prune):\n%s", diff)
	}
	bytes := map[string]int64{}
	for _, e := range deleted {
		bytes[e.Name] = e.Bytes
	}
	wantSame(t, "deleted bytes", bytes, map[string]int64{"small": 10, "large": 5000, "failed": 70, "batch": 55, "foreign": 10})
	wantSame(t, "jobs after the prune", s.jobNames(), []string{"pinned", "young"})
	if n := len(s.jobDirs()); n != 2 {
		t.Errorf("%d job directories, want 2", n)
	}
}

func TestPruneContinuesOnTheNextPage(t *testing.T) {
	s := newSite(t)
	const jobs = 203 // more than a page
	var wg sync.WaitGroup
	for i := range jobs {
		by := ann
		if i%3 == 0 {
			by = eve
		}
		name := fmt.Sprint("job", i)
		wg.Go(func() {
			if _, _, err := s.Jobs.Submit(t.Context(), by, submission(t, name, `{}`)); err != nil {
				t.Error(err)
			}
			if _, err := s.Jobs.Cancel(t.Context(), by, name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, dryRun := range []bool{true, false} {
		r := retention.PruneRequest{EndedBefore: s.now(), DryRun: dryRun}
		first, err := s.Retention.Prune(t.Context(), r)
		must(t, err)
		if first.Next == nil || len(first.Jobs) == 0 {
			t.Fatalf("dry run %v: the first page has %d jobs and the next begins at %v, want a next page", dryRun, len(first.Jobs), first.Next)
		}
		r.After = first.Next
		if n := len(first.Jobs) + len(s.prune(r)); n != jobs {
			t.Errorf("dry run %v: %d jobs, want %d", dryRun, n, jobs)
		}
	}
}
