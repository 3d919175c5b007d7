package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"molrun/app"
)

// renameType is a migration such as a later version may need: it changes
// records and gives up the index and the sum that they invalidate.
func renameType(tx *bolt.Tx) error {
	b := tx.Bucket([]byte(bucketJobs))
	changed := map[string][]byte{}
	err := b.ForEach(func(k, v []byte) error {
		changed[string(k)] = bytes.Replace(v, []byte(`"type":"echo"`), []byte(`"type":"mirror"`), 1)
		return nil
	})
	for k, v := range changed {
		err = errors.Join(err, b.Put([]byte(k), v))
	}
	return errors.Join(err, tx.DeleteBucket([]byte(indexJobsList)), tx.DeleteBucket([]byte(sumJobsUsage)))
}

func openSteps(t *testing.T, path string, steps ...migration) *Store {
	t.Helper()
	s, err := open(path, Options{}, steps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// listed counts the jobs of a type.
func listed(t *testing.T, s *Store, typ string) (n int) {
	t.Helper()
	view(t, s, func(tx app.Tx) error {
		page, err := tx.Jobs(app.JobFilter{Organization: "lab", Type: typ}, "", 10000)
		n = len(page.Jobs)
		return err
	})
	return n
}

func TestMigrationRunsOnceAndKeepsWhatWasBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openSteps(t, path)
	putJobs(t, s, testJobs(3)...)
	closeStore(t, s)

	runs := 0
	step := func(tx *bolt.Tx) error { runs++; return renameType(tx) }
	for range 2 {
		s = openSteps(t, path, step)
		if echo, mirror := listed(t, s, "echo"), listed(t, s, "mirror"); echo != 0 || mirror != 3 {
			t.Errorf("%d echo and %d mirror jobs, want 0 and 3", echo, mirror)
		}
		checkStore(t, s)
		closeStore(t, s)
	}
	if runs != 1 {
		t.Errorf("the step ran %d times, want once", runs)
	}

	old := openSteps(t, path+".before-2")
	if echo := listed(t, old, "echo"); echo != 3 {
		t.Errorf("the copy has %d echo jobs, want 3", echo)
	}
	checkStore(t, old)

	if _, err := open(path, Options{}, nil); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer schema: %v, want it refused", err)
	}
}

// TestPrivatePartsOfSchema1AreRead opens what a version stored that kept the
// settings twice, changes a job, and reads it as before.
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
			t.Errorf("it reads as another: %s", diff)
		}
		if n := len(privateOf(tx, old.ID)); n > 450 {
			t.Errorf("the private part has %d bytes, want the settings to be kept once", n)
		}
		return err
	})
	checkStore(t, s)
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openSteps(t, path)
	putJobs(t, s, testJobs(3)...)
	closeStore(t, s)

	first := func(tx *bolt.Tx) error { return nil }
	second := func(tx *bolt.Tx) error { return errors.Join(renameType(tx), errMine) }
	if _, err := open(path, Options{}, []migration{first, second}); !errors.Is(err, errMine) {
		t.Fatalf("error %v, want the step's", err)
	}
	s = openSteps(t, path, first) // which was done
	if echo := listed(t, s, "echo"); echo != 3 {
		t.Errorf("%d echo jobs, want 3", echo)
	}
	checkStore(t, s)
}

// edit changes a closed database behind the store's back.
func edit(t *testing.T, path string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenBuildsMissingIndexes(t *testing.T) {
	for name, change := range map[string]func(*bolt.Tx) error{
		"never built": func(tx *bolt.Tx) error { return dropIndex(tx, indexJobsList) },
		"bucket gone": func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(indexJobsList)) },
		"building was cut short": func(tx *bolt.Tx) error {
			err := tx.Bucket([]byte(bucketMeta)).Delete([]byte(metaIndex + indexJobsList))
			b := tx.Bucket([]byte(indexJobsList))
			for range 100 {
				k, _ := b.Cursor().First()
				err = errors.Join(err, b.Delete(k))
			}
			return errors.Join(err, b.Put([]byte("stray"), nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openSteps(t, path)
			const jobs = buildRecords + 10 // more than one transaction
			putJobs(t, s, testJobs(jobs)...)
			closeStore(t, s)
			edit(t, path, change)

			s = openSteps(t, path)
			if n := listed(t, s, "echo"); n != jobs {
				t.Errorf("%d jobs are listed, want %d", n, jobs)
			}
			checkStore(t, s)
		})
	}
}

func TestOpenDropsIndexesItDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	closeStore(t, openSteps(t, path))
	edit(t, path, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("jobs.colour"))
		return errors.Join(err, markBuilt(tx, "jobs.colour"))
	})
	closeStore(t, openSteps(t, path))
	edit(t, path, func(tx *bolt.Tx) error {
		if tx.Bucket([]byte("jobs.colour")) != nil || tx.Bucket([]byte(bucketMeta)).Get([]byte(metaIndex+"jobs.colour")) != nil {
			t.Error("the index is still there and no longer kept")
		}
		return nil
	})
}

func TestDamagedMetaIsRefused(t *testing.T) {
	for name, change := range map[string]func(*bolt.Tx) error{
		"schema": func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaSchema), []byte("x")) },
		"floor":  func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaFloor), []byte("x")) },
	} {
		path := filepath.Join(t.TempDir(), "jobs.db")
		closeStore(t, openSteps(t, path))
		edit(t, path, change)
		if _, err := open(path, Options{}, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

func TestNothingButTheDatabaseAndWhatWatchesOverItIsLeft(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"jobs.db.snapshot.1.tmp", "jobs.db.compact.tmp"} { // of processes that were killed
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, openSteps(t, filepath.Join(dir, "jobs.db")))
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"jobs.db", "jobs.db.commits", "jobs.db.initialised"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the directory holds %q, want %q; %v", names, want, err)
	}
}

func privateOf(atx app.Tx, id app.JobID) []byte {
	key := idOf(id)
	return atx.(*tx).bucket(bucketJobsPrivate).Get(key[:])
}
