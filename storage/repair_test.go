package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app/fault"
)

func TestRepairDerivesWhatRecordsSayAndNothingElse(t *testing.T) {
	bucket := func(tx *bolt.Tx, name string) *bolt.Bucket { return tx.Bucket([]byte(name)) }
	first := func(tx *bolt.Tx, name string) []byte {
		k, _ := bucket(tx, name).Cursor().First()
		return bytes.Clone(k)
	}
	id, parent := testID(1), testID(10)
	tests := []struct {
		name  string
		left  string // of the problems, "" is none
		spoil func(*bolt.Tx) error
	}{
		{"a lost index entry", "", func(tx *bolt.Tx) error {
			return bucket(tx, indexJobsList).Delete(first(tx, indexJobsList))
		}},
		{"a stray index entry", "", func(tx *bolt.Tx) error { return bucket(tx, indexJobsClaimed).Put(id[:], nil) }},
		{"a name in the index twice", "", func(tx *bolt.Tx) error {
			return bucket(tx, indexJobsName).Put(nameKey("lab", "job-1").id(testID(3)), nil)
		}},
		{"a missing index", "", func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(indexUploadsName)) }},
		{"a wrong count", "", func(tx *bolt.Tx) error {
			b := bucket(tx, bucketJobs)
			return b.Put(parent[:], bytes.Replace(b.Get(parent[:]), []byte(`"QUEUED":2`), []byte(`"QUEUED":5`), 1))
		}},
		{"a floor below a record", "", func(tx *bolt.Tx) error { return putFloor(tx, testID(2)) }},
		{"a record that is no JSON", "read job", func(tx *bolt.Tx) error {
			return errors.Join(bucket(tx, bucketJobs).Put(id[:], []byte("{")), bucket(tx, indexJobsClaimed).Put(id[:], nil))
		}},
		{"a lost private part", "what is private", func(tx *bolt.Tx) error {
			return bucket(tx, bucketJobsPrivate).Delete(id[:])
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openSteps(t, path)
			putSample(t, s)
			closeStore(t, s)
			edit(t, path, tt.spoil)
			report, err := Repair(t.Context(), path, Options{})
			switch {
			case tt.left == "" && (err != nil || report.Count > 0):
				t.Errorf("afterwards %+v, %v", report, err)
			case tt.left != "" && err == nil && (report.Derivable > 0 || report.Count == 0 || !strings.Contains(report.Problems[0].Text, tt.left)):
				t.Errorf("afterwards %+v, want %q alone", report, tt.left)
			}
			if tt.left == "" {
				s := openAt(t, path, Options{})
				checkStore(t, s)
				if old, err := OpenReadOnly(path + beforeRepair); err != nil {
					t.Errorf("there is no copy of how it was: %v", err)
				} else {
					must(t, old.Close())
				}
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRepairRefusesDamagedPagesAndAnOpenDatabase(t *testing.T) {
	t.Parallel() // it waits out the lock
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Options{})
	putJobs(t, s, testJobs(300)...)
	if _, err := Repair(t.Context(), path, Options{}); !errors.Is(err, fault.Unavailable) {
		t.Errorf("of an open database: %v", err)
	}
	zeroIndex(t, s)
	data, _ := os.ReadFile(path)
	if _, err := Repair(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "restore a backup") {
		t.Errorf("of damaged pages: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, data) {
		t.Error("the damaged database was changed")
	}
}

// zeroIndex closes the store and overwrites the root page of an index.
func zeroIndex(t *testing.T, s *Store) {
	t.Helper()
	path, root := s.db.Path(), int64(0)
	must(t, s.db.View(func(tx *bolt.Tx) error {
		root = int64(tx.Bucket([]byte(indexJobsName)).Root())
		return nil
	}))
	closeStore(t, s)
	must(t, overwrite(path, root*page, make([]byte, page)))
}
