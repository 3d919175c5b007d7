package storage

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// namesOf returns the names on the first page of a listing.
func namesOf(t *testing.T, tx app.Tx, f app.JobFilter) (names []string) {
	t.Helper()
	page, err := tx.Jobs(f, "", 100)
	must.OK(t, err)
	for _, stored := range page.Jobs {
		var j app.Job
		must.OK(t, json.Unmarshal(stored.JSON, &j))
		names = append(names, j.Name)
	}
	return names
}

// TestPageIsBoundedWhereFewJobsMatch searches many jobs for the oldest one.
func TestPageIsBoundedWhereFewJobsMatch(t *testing.T) {
	const jobs = 3*maxScan - 100
	s := openNew(t)
	all := testJobs(jobs)
	all[0].Note = "Needle"
	for some := range slices.Chunk(all, 500) {
		putJobs(t, s, some...)
	}
	view(t, s, func(tx app.Tx) error {
		f := app.JobFilter{Organization: "lab", Search: "needle"}
		var after app.Position
		for pages := 1; ; pages++ {
			page, err := tx.Jobs(f, after, 1)
			must.OK(t, err)
			if after = page.Next; after != "" {
				if len(page.Jobs) > 0 || pages > 2 {
					t.Fatalf("page %d has %d jobs and is not the last", pages, len(page.Jobs))
				}
				continue
			}
			if pages != 3 || len(page.Jobs) != 1 || page.Jobs[0].ID != all[0].ID {
				t.Errorf("page %d, the last one, has %v, want the third to have the oldest job", pages, page.Jobs)
			}
			break
		}
		n, more, err := tx.CountJobs(f, 10)
		if n != 0 || !more || err != nil {
			t.Errorf("counted %d, more %v, %v; want none so far", n, more, err)
		}
		if n, more, err := tx.CountJobs(f, jobs); n != 1 || more || err != nil {
			t.Errorf("counted %d, more %v, %v; want one", n, more, err)
		}
		return nil
	})
}

// TestSeveralStatusesAreMergedInOrder lists a few jobs of two statuses that come after
// many of a third.
func TestSeveralStatusesAreMergedInOrder(t *testing.T) {
	s := openNew(t)
	all := testJobs(2 * maxScan)
	var want []string
	for i, j := range all {
		j.Status = app.Completed
		if i%1000 == 7 {
			j.Status = []app.Status{app.Queued, app.Failed}[i/1000%2]
			want = append(want, fmt.Sprintf("job-%d", i))
		}
	}
	for some := range slices.Chunk(all, 500) {
		putJobs(t, s, some...)
	}
	view(t, s, func(tx app.Tx) error {
		f := app.JobFilter{Organization: "lab", Statuses: []app.Status{app.Queued, app.Failed}, Ascending: true}
		must.Equal(t, "rising", namesOf(t, tx, f), want)
		f.Ascending = false
		slices.Reverse(want)
		must.Equal(t, "falling", namesOf(t, tx, f), want)
		return nil
	})
}
