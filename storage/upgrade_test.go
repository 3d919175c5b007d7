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

	gocmp "github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/test/must"
	"molrun/storage/kv"
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

func TestOpenSumsRecordsOfAnOlderVersion(t *testing.T) {
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
			var finished, readers int
			for range tx.Finished("lab", app.Completed, app.Ended{}) {
				finished++
			}
			for range tx.Readers(jobIDText(50)) {
				readers++
			}
			if finished != 2 || readers != 1 {
				t.Errorf("%d completed jobs, %d readers of the upload; want 2 and 1", finished, readers)
			}
			return nil
		})
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
// twice, changes a job, and reads it back.
func TestPrivatePartsOfSchema1AreRead(t *testing.T) {
	s := openAt(t, oldDatabase(t), Options{})
	settings := json.RawMessage(`{"note":"` + strings.Repeat("x", 500) + `"}`)
	var old *app.Job
	update(t, s, func(tx app.Tx) error {
		page, err := tx.Jobs(app.JobFilter{Organization: "lab"}, "", 100)
		if err != nil {
			return err
		}
		for _, stored := range page.Jobs {
			j, err := tx.Job(stored.ID)
			if err != nil {
				return err
			}
			old = j
			if err := tx.PutJob(j); err != nil {
				return err
			}
		}
		old.Settings, old.Private.Normalized = settings, settings
		return tx.PutJob(old)
	})
	view(t, s, func(tx app.Tx) error {
		j, err := tx.Job(old.ID)
		if diff := gocmp.Diff(old, j); diff != "" {
			t.Errorf("it reads differently: %s", diff)
		}
		if n := len(privateOf(tx, old.ID)); n > 450 {
			t.Errorf("the private part has %d bytes, want the settings stored once", n)
		}
		return err
	})
	checkStore(t, s)
}

func privateOf(atx app.Tx, id app.JobID) []byte {
	key := idOf(id)
	return atx.(tx).Bucket(bucketJobsPrivate).Get(key[:])
}

// A start that was interrupted while it built an index has left some of its entries.
func TestInterruptedListingIsBuiltAgain(t *testing.T) {
	path := newPath(t)
	s := openAt(t, path, Options{})
	putJobs(t, s, testJobs(510)...) // more than one transaction builds
	must.OK(t, s.Close())
	for _, left := range []int{0, 1, 1000} {
		edit(t, path, func(tx *bolt.Tx) error {
			var drop [][]byte
			b := bucketOf(tx, indexJobsList)
			must.OK(t, b.ForEach(func(k, _ []byte) error {
				if left--; left < 0 {
					drop = append(drop, k)
				}
				return nil
			}))
			for _, k := range drop {
				must.OK(t, b.Delete(k))
			}
			return tx.Bucket([]byte(kv.Meta)).Delete([]byte("index " + indexJobsList))
		})
		s = openAt(t, path, Options{})
		checkStore(t, s)
		must.OK(t, s.Close())
	}
}

func TestInterruptedSumIsBuiltAgain(t *testing.T) {
	path := newPath(t)
	s := openAt(t, path, Options{})
	const n = 510 // more than one transaction builds
	putJobs(t, s, testJobs(n)...)
	must.OK(t, s.Close())
	edit(t, path, func(tx *bolt.Tx) error {
		err := tx.Bucket([]byte(kv.Meta)).Delete([]byte("index " + sumJobsTotal))
		return errors.Join(err, tx.Bucket([]byte(sumJobsTotal)).Put(kv.Key{}.Text("lab"), appendUsage(nil, app.Usage{Jobs: 500})))
	})
	s = openAt(t, path, Options{})
	checkStore(t, s)
	view(t, s, func(tx app.Tx) error {
		if got, err := tx.Stored("lab", ""); err != nil || got.Jobs != n || got.Queued != n {
			t.Errorf("%+v, %v, want %d jobs", got, err, n)
		}
		return nil
	})
}
