package retention_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/job/retention"
	"molrun/app/test/must"
)

func TestPruneDeletesWhatItsDryRunReports(t *testing.T) {
	t.Parallel()
	s := newSite(t, retention.Options{})
	u := s.Upload(ann, "in.txt", "hello")
	small := s.completed(ann, "small", reading(u), 10)
	large := s.completed(bob, "large", `{}`, 5000)
	failed := s.Submit(ann, "failed", reading(u))
	s.Fail(failed, map[string]string{"log": strings.Repeat("x", 70)}) // kept in its directory
	foreign := s.completed(eve, "foreign", `{}`, 10)
	_, rows := s.SubmitBatch(ann, "batch", reading(u), reading(u))
	s.Complete(rows[0], map[string]string{"out.txt": strings.Repeat("x", 20)})
	s.Complete(rows[1], map[string]string{"out.txt": strings.Repeat("x", 30)})
	s.completed(ann, "pinned", `{}`, 10)
	s.pin("pinned")
	s.Advance(10 * day)
	s.completed(ann, "young", `{}`, 10)
	fiveDaysAgo := s.Now().Add(-5 * day)

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
		must.Equal(t, "dry run of "+name, describe(s.prune(tt.request)), tt.want)
	}
	must.Equal(t, "jobs after the dry runs", s.jobNames(), []string{"batch", "failed", "large", "pinned", "small", "young"})

	onDisk := map[string]int64{
		"small": s.sizeOf(small), "large": s.sizeOf(large), "failed": 70, "batch": s.sizeOf(rows...) + 5, "foreign": s.sizeOf(foreign),
	}
	reported := s.prune(retention.PruneRequest{EndedBefore: fiveDaysAgo, DryRun: true})
	deleted := s.prune(retention.PruneRequest{EndedBefore: fiveDaysAgo})
	if diff := cmp.Diff(reported, deleted, cmp.AllowUnexported(app.Expired{})); diff != "" {
		t.Errorf("the prune differs from its dry run (-dry run +prune):\n%s", diff)
	}
	bytes := map[string]int64{}
	for _, e := range deleted {
		bytes[e.Name] = e.Bytes
	}
	must.Equal(t, "deleted bytes", bytes, onDisk)
	must.Equal(t, "jobs after the prune", s.jobNames(), []string{"pinned", "young"})
	must.Equal(t, "job directories", len(s.jobDirs()), 2)
}

func TestPruneContinuesOnTheNextPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, retention.Options{})
	const jobs = 203 // more than a page
	var wg sync.WaitGroup
	for i := range jobs {
		by := ann
		if i%3 == 0 {
			by = eve
		}
		name := fmt.Sprint("job", i)
		wg.Go(func() {
			s.Submit(by, name, `{}`)
			if _, err := s.Jobs.Cancel(t.Context(), by, name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, dryRun := range []bool{true, false} {
		r := retention.PruneRequest{EndedBefore: s.Now(), DryRun: dryRun}
		first, err := s.keeper.Prune(t.Context(), r)
		must.OK(t, err)
		if first.Next == nil || len(first.Jobs) == 0 {
			t.Fatalf("dry run %v: the first page has %d jobs and the next begins at %v, want a next page", dryRun, len(first.Jobs), first.Next)
		}
		r.After = first.Next
		must.Equal(t, fmt.Sprintf("dry run %v", dryRun), len(first.Jobs)+len(s.prune(r)), jobs)
	}
}
