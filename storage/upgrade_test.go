package storage

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/job/quota"
	"molrun/app/test/must"
)

// oldDatabase returns a copy of a database of schema 1, from a version without sums.
// Lab has a completed job of 1000 bytes, a failed one, a queued one that reads an upload
// of 30 bytes, and a batch of bob's with rows of 100 and 200 bytes. Other has a
// completed job of 7 bytes.
func oldDatabase(t *testing.T) (path string) { return unpack(t, "schema-1.db.gz") }

func unpack(t *testing.T, name string) (path string) {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", name))
	must.OK(t, err)
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	must.OK(t, err)
	path = newPath(t)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(f, reader)
		err = errors.Join(err, f.Close())
	}
	must.OK(t, err)
	return path
}

func TestRecordsOfAnOlderVersionAreSummed(t *testing.T) {
	path := oldDatabase(t)
	for range 2 { // at the first start and at the next
		s := openAt(t, path, Options{})
		checkStore(t, s)
		view(t, s, func(tx app.Tx) error {
			for organization, want := range map[string]app.Usage{
				"lab":   {Jobs: 5, Queued: 1, Files: 1, Bytes: 1330},
				"other": {Jobs: 1, Bytes: 7},
			} {
				if got, err := tx.Stored(organization, ""); err != nil || got != want {
					t.Errorf("%s stores %+v, %v, want %+v", organization, got, err, want)
				}
			}
			finished, readers := collect(t, tx.Finished("lab", app.Completed, app.Ended{})), collect(t, tx.Readers(jobIDText(50)))
			if len(finished) != 2 || len(readers) != 1 {
				t.Errorf("%d completed jobs, %d readers of the upload; want 2 and 1", len(finished), len(readers))
			}
			return nil
		})
		wantSpent(t, s, "lab", quota.Spent{Completed: 3, Failed: 1, ResultBytes: 1300, Uploads: 1, UploadBytes: 30})
		wantSpent(t, s, "other", quota.Spent{Completed: 1, ResultBytes: 7})
		sum := app.Usage{}
		for _, total := range totals(t, s).Jobs {
			sum = sum.Plus(total.Usage)
		}
		must.Equal(t, "the sum of all jobs", sum, app.Usage{Jobs: 6, Queued: 1, Bytes: 1307})
		must.OK(t, s.Close())
	}
}

// The file has six jobs: 0 and 5 are queued, 1 to 3 completed, 4 failed, and 2 is
// pinned; the later ones ended earlier. Its version left pinned jobs out of
// jobs.finished.
func TestSchema2GetsTheIndexesOfLaterFilters(t *testing.T) {
	path := unpack(t, "schema-2.db.gz")
	for range 2 { // at the first start and at the next
		s := openAt(t, path, Options{})
		checkStore(t, s)
		view(t, s, func(tx app.Tx) error {
			for _, tt := range []struct {
				filter app.JobFilter
				want   []string
			}{
				{app.JobFilter{ByCompletion: true, Ascending: true}, []string{"job-4", "job-3", "job-2", "job-1"}},
				{app.JobFilter{Search: "b-5"}, []string{"job-5"}},
			} {
				tt.filter.Organization = "lab"
				if got := namesOf(t, tx, tt.filter); !slices.Equal(got, tt.want) {
					t.Errorf("list %+v: %q, want %q", tt.filter, got, tt.want)
				}
			}
			if removable := collect(t, tx.Finished("lab", app.Completed, app.Ended{})); len(removable) != 2 {
				t.Errorf("retention may delete %v, want the two that are not pinned", removable)
			}
			return nil
		})
		must.OK(t, s.Close())
	}
}

// TestPrivatePartsOfSchema1AreRead opens a database whose version stored the settings
// twice, changes its jobs, and reads one back.
func TestPrivatePartsOfSchema1AreRead(t *testing.T) {
	s := openAt(t, oldDatabase(t), Options{})
	settings := json.RawMessage(`{"note":"` + strings.Repeat("x", 500) + `"}`)
	var changed *app.Job
	update(t, s, func(tx app.Tx) error {
		page, err := tx.Jobs(app.JobFilter{Organization: "lab"}, "", 100)
		must.OK(t, err)
		for _, stored := range page.Jobs {
			changed, err = tx.Job(stored.ID)
			must.OK(t, err)
			must.OK(t, tx.PutJob(changed))
		}
		changed.Settings, changed.Private.Normalized = settings, settings
		return tx.PutJob(changed)
	})
	view(t, s, func(atx app.Tx) error {
		j, err := atx.Job(changed.ID)
		must.Equal(t, "the job", j, changed)
		id := idOf(changed.ID)
		if n := len(atx.(tx).Bucket(bucketJobsPrivate).Get(id[:])); n > 450 {
			t.Errorf("the private part has %d bytes, want the settings stored once", n)
		}
		return err
	})
	checkStore(t, s)
}
