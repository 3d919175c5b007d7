package storage

import (
	"maps"
	"slices"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/unit"
)

// agreeUsage counts all records anew.
func agreeUsage(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	total := map[string]app.Usage{}
	shares := map[app.UsageShare]app.Usage{}
	count := func(organization, email, typ string, at unit.Time, u app.Usage) {
		total[organization] = total[organization].Plus(u)
		share := app.UsageShare{Organization: organization, Email: email, Type: typ, Day: at.Truncate(24 * time.Hour)}
		shares[share] = shares[share].Plus(u)
	}
	for _, j := range s.jobs {
		if j.IsBatch() {
			continue
		}
		u := app.Usage{Jobs: 1}
		at := j.CreatedAt
		if j.Status.Finished() {
			at = j.CompletedAt
		}
		if j.Status == app.Queued {
			u.Queued = 1
		}
		if j.ResultBytes != nil {
			u.Bytes = *j.ResultBytes
		}
		count(j.Organization, j.Email, j.Type, at, u)
	}
	for _, u := range s.uploads {
		count(u.Organization, u.Email, "", u.CreatedAt, app.Usage{Files: 1, Bytes: u.Size})
	}
	var organizations []string
	for _, organization := range someOrganizations {
		got, err := tx.Stored(organization)
		if err != nil || got != total[organization] {
			t.Errorf("%q stores %+v, %v, want %+v", organization, got, err, total[organization])
		}
		ends := func(j *app.Job) bool {
			return j.Organization == organization && j.Status.Finished() && !j.Pinned && j.Private.Batch == ""
		}
		if got != (app.Usage{}) || slices.ContainsFunc(slices.Collect(maps.Values(s.jobs)), ends) {
			organizations = append(organizations, organization)
		}
	}
	agreeStatuses(t, tx, s)
	slices.Sort(organizations)
	if got, err := tx.Organizations(); err != nil || !slices.Equal(got, organizations) {
		t.Errorf("organizations %q, %v, want %q", got, err, organizations)
	}
	got := map[app.UsageShare]app.Usage{}
	for share, err := range tx.Usage() {
		if err != nil {
			t.Error(err)
		}
		of := share
		of.Usage = app.Usage{}
		got[of] = got[of].Plus(share.Usage)
	}
	if diff := differ(shares, got); diff != "" {
		t.Errorf("shares: %s", diff)
	}
}

// agreeStatuses counts all jobs but rows.
func agreeStatuses(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, organization := range someOrganizations {
		for _, email := range append([]string{""}, someEmails...) {
			var want app.Counts
			for _, j := range s.jobs {
				if j.Organization == organization && (email == "" || j.Email == email) && j.Private.Batch == "" {
					*want.Of(j.Status)++
				}
			}
			if got, err := tx.Statuses(organization, email); err != nil || got != want {
				t.Errorf("%q of %q has %+v, %v, want %+v", email, organization, got, err, want)
			}
		}
	}
}

func TestOrganizationOfNothingButAnEmptyBatchIsListed(t *testing.T) {
	s := openNew(t)
	batch := testJob(1)
	batch.Organization, batch.Status, batch.Counts = "firm", app.Completed, &app.Counts{}
	putJobs(t, s, batch)
	view(t, s, func(tx app.Tx) error {
		got, err := tx.Organizations()
		if want := []string{"firm"}; !slices.Equal(got, want) {
			t.Errorf("organizations %q, want %q: retention has to find the batch", got, want)
		}
		return err
	})
}

// agreeFinished walks what retention may delete.
func agreeFinished(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	expirable := func(organization, email string, status app.Status) (all []app.Ended) {
		for _, j := range s.jobs {
			if j.Organization == organization && (email == "" || j.Email == email) && j.Status == status && !j.Pinned && j.Private.Batch == "" {
				all = append(all, app.Ended{ID: j.ID, At: j.CompletedAt.Time})
			}
		}
		slices.SortFunc(all, app.Ended.Compare)
		return all
	}
	organization, email := pick(s.r, someOrganizations), pick(s.r, append(someEmails, ""))
	for _, status := range []app.Status{app.Completed, app.Failed} {
		want := expirable(organization, "", status)
		after := app.Ended{}
		if len(want) > 0 && s.r.IntN(2) == 0 {
			n := s.r.IntN(len(want))
			after, want = want[n], want[n+1:]
		}
		var got []app.Ended
		for e, err := range tx.Finished(organization, status, after) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, e)
		}
		if !slices.EqualFunc(got, want, func(a, b app.Ended) bool { return a.Compare(b) == 0 }) {
			t.Errorf("%s jobs of %q after %v: %v, want %v", status, organization, after, got, want)
		}
	}
	want := append(expirable(organization, email, app.Completed), expirable(organization, email, app.Failed)...)
	slices.SortFunc(want, func(a, b app.Ended) int { return b.Compare(a) })
	want = want[:min(len(want), s.r.IntN(10))]
	got, err := tx.Newest(organization, email, len(want))
	if err != nil || !slices.EqualFunc(got, want, func(a, b app.Ended) bool { return a.Compare(b) == 0 }) {
		t.Errorf("newest of %q %q: %v, %v, want %v", organization, email, got, err, want)
	}
	source := testID(s.r.IntN(20)).String()
	var readers []app.JobID
	for id, err := range tx.Readers(source) {
		if err != nil {
			t.Error(err)
		}
		readers = append(readers, id)
	}
	for _, j := range s.sorted(func(j *app.Job) bool {
		return slices.ContainsFunc(j.Private.References, func(src app.Reference) bool {
			return string(src.Upload) == source || string(src.Job) == source
		})
	}) {
		if len(readers) == 0 || readers[0] != j.ID {
			t.Errorf("readers of %s: %v, want %s next", source, readers, j.ID)
			return
		}
		readers = readers[1:]
	}
	if len(readers) > 0 {
		t.Errorf("%s is read by %v, too", source, readers)
	}
}

func TestStampIsKept(t *testing.T) {
	path := newPath(t)
	s := openAt(t, path, Options{})
	want := time.Date(2026, 11, 20, 10, 40, 0, 123456789, time.UTC)
	view(t, s, func(tx app.Tx) error {
		if at, err := tx.Stamp(); err != nil || !at.IsZero() {
			t.Errorf("before: %v, %v", at, err)
		}
		return nil
	})
	update(t, s, func(tx app.Tx) error { return tx.PutStamp(want) })
	must(t, s.Close())
	view(t, openAt(t, path, Options{}), func(tx app.Tx) error {
		if at, err := tx.Stamp(); err != nil || !at.Equal(want) {
			t.Errorf("%v, %v, want %v", at, err, want)
		}
		return nil
	})
}
