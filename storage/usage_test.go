package storage

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

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

// oldDatabase gives a database that a version without sums has made: of lab, a
// completed job of 1000 bytes, a failed one, one that waits and reads an upload
// of 30 bytes, and a batch of bob's with rows of 100 and 200 bytes; of other, a
// completed job of 7 bytes.
func oldDatabase(t *testing.T) (path string) {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", "schema-1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "jobs.db")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(f, reader)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenCountsWhatAnOlderVersionStored(t *testing.T) {
	path := oldDatabase(t)
	for range 2 { // at the first start and at the next
		s := openAt(t, path, Options{})
		checkStore(t, s)
		view(t, s, func(tx app.Tx) error {
			for organization, want := range map[string]app.Usage{
				"lab":   {Jobs: 5, Queued: 1, Files: 1, Bytes: 1330},
				"other": {Jobs: 1, Bytes: 7},
			} {
				if got, err := tx.Stored(organization); err != nil || got != want {
					t.Errorf("%s stores %+v, %v, want %+v", organization, got, err, want)
				}
			}
			var finished, readers int
			for range tx.Finished("lab", app.Completed, app.Ended{}) {
				finished++
			}
			for range tx.Readers(jobText(50)) {
				readers++
			}
			if finished != 2 || readers != 1 {
				t.Errorf("%d completed jobs, %d readers of the upload; want 2 and 1", finished, readers)
			}
			return nil
		})
		closeStore(t, s)
	}
}

func TestSumThatWasCutShortIsCountedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openSteps(t, path)
	const jobs = buildRecords + 10 // more than one transaction
	putJobs(t, s, testJobs(jobs)...)
	closeStore(t, s)
	edit(t, path, func(tx *bolt.Tx) error { // as after a crash in the midst of building
		err := tx.Bucket([]byte(bucketMeta)).Delete([]byte(metaIndex + sumJobsTotal))
		return errors.Join(err, tx.Bucket([]byte(sumJobsTotal)).Put(key{}.text("lab"), appendUsage(nil, app.Usage{Jobs: buildRecords})))
	})
	s = openSteps(t, path)
	checkStore(t, s)
	view(t, s, func(tx app.Tx) error {
		if got, err := tx.Stored("lab"); err != nil || got.Jobs != jobs || got.Queued != jobs {
			t.Errorf("%+v, %v, want %d jobs", got, err, jobs)
		}
		return nil
	})
}

func TestRepairCountsAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openSteps(t, path)
	putJobs(t, s, testJobs(3)...)
	closeStore(t, s)
	edit(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(sumJobsTotal)).Put(key{}.text("lab"), appendUsage(nil, app.Usage{Jobs: 70}))
	})
	report, err := Repair(context.Background(), path, Options{})
	if err != nil || report.Count != 0 {
		t.Fatalf("repair: %+v, %v", report, err)
	}
	checkStore(t, openSteps(t, path))
}

func TestStampIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openSteps(t, path)
	want := time.Date(2026, 11, 20, 10, 40, 0, 123456789, time.UTC)
	view(t, s, func(tx app.Tx) error {
		if at, err := tx.Stamp(); err != nil || !at.IsZero() {
			t.Errorf("before: %v, %v", at, err)
		}
		return nil
	})
	update(t, s, func(tx app.Tx) error { return tx.PutStamp(want) })
	closeStore(t, s)
	view(t, openSteps(t, path), func(tx app.Tx) error {
		if at, err := tx.Stamp(); err != nil || !at.Equal(want) {
			t.Errorf("%v, %v, want %v", at, err, want)
		}
		return nil
	})
}
