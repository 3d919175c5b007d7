package storage

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/unit"
)

// TestCheckFinds spoils a good database, each time in another way.
func TestCheckFinds(t *testing.T) {
	id := testID(1)
	bucket := func(tx *bolt.Tx, name string) *bolt.Bucket { return tx.Bucket([]byte(name)) }
	firstKey := func(tx *bolt.Tx, name string) []byte {
		k, _ := bucket(tx, name).Cursor().First()
		return bytes.Clone(k)
	}
	edited := func(tx *bolt.Tx, old, now string) error {
		b := bucket(tx, bucketJobs)
		shown := b.Get(id[:])
		if !bytes.Contains(shown, []byte(old)) {
			return errors.New("the record has no " + old)
		}
		return b.Put(id[:], bytes.Replace(shown, []byte(old), []byte(now), 1))
	}
	tests := []struct {
		name, message string
		spoil         func(*bolt.Tx) error
	}{
		{"nothing", "", func(*bolt.Tx) error { return nil }},
		{"lost index entry", "jobs.list lacks an entry", func(tx *bolt.Tx) error {
			return bucket(tx, indexJobsList).Delete(firstKey(tx, indexJobsList))
		}},
		{"stray index entry", "jobs.claimed has 2 entries, its records have 1", func(tx *bolt.Tx) error {
			return bucket(tx, indexJobsClaimed).Put(id[:], nil)
		}},
		{"wrong value in the queue", "jobs.queue has another value", func(tx *bolt.Tx) error {
			return bucket(tx, indexJobsQueue).Put(firstKey(tx, indexJobsQueue), []byte{2, 2, 2})
		}},
		{"sum that is wrong", "jobs.total says {Jobs:9 ", func(tx *bolt.Tx) error {
			return bucket(tx, sumJobsTotal).Put(firstKey(tx, sumJobsTotal), appendUsage(nil, app.Usage{Jobs: 9, Queued: 9}))
		}},
		{"sum that is lost", "uploads.usage says nothing of", func(tx *bolt.Tx) error {
			return bucket(tx, sumUploadsUsage).Delete(firstKey(tx, sumUploadsUsage))
		}},
		{"sum of nobody", `jobs.usage says {Jobs:1 `, func(tx *bolt.Tx) error {
			return bucket(tx, sumJobsUsage).Put([]byte("stray"), appendUsage(nil, app.Usage{Jobs: 1}))
		}},
		{"sum that is no sum", "uploads.total says", func(tx *bolt.Tx) error {
			return bucket(tx, sumUploadsTotal).Put(firstKey(tx, sumUploadsTotal), []byte{1})
		}},
		{"finished job that retention would not see", "jobs.finished has", func(tx *bolt.Tx) error {
			return bucket(tx, indexJobsFinished).Put(finishedKey("lab", "", app.Failed).time(testID(1).Time()).id(id), nil)
		}},
		{"upload left in the index", "uploads.name has", func(tx *bolt.Tx) error {
			upload := testID(50)
			return bucket(tx, bucketUploads).Delete(upload[:])
		}},
		{"record of no job", "belongs to no job", func(tx *bolt.Tx) error {
			lost := testID(9)
			return bucket(tx, bucketJobsPrivate).Put(lost[:], []byte("{}"))
		}},
		{"lost private record", "what is private", func(tx *bolt.Tx) error {
			return bucket(tx, bucketJobsPrivate).Delete(id[:])
		}},
		{"record that is no JSON", "read job", func(tx *bolt.Tx) error {
			return bucket(tx, bucketJobs).Put(id[:], []byte("{"))
		}},
		{"another ID in the record", "stored under another ID", func(tx *bolt.Tx) error {
			return edited(tx, jobText(1), jobText(2))
		}},
		{"status that is none", `has status "LOST"`, func(tx *bolt.Tx) error {
			return edited(tx, "QUEUED", "LOST")
		}},
		{"job that nobody watches", "running but not claimed", func(tx *bolt.Tx) error {
			return edited(tx, "QUEUED", "RUNNING")
		}},
		{"wrong count", "counts {Queued:5 ", func(tx *bolt.Tx) error {
			b, parent := bucket(tx, bucketJobs), testID(10)
			return b.Put(parent[:], bytes.Replace(b.Get(parent[:]), []byte(`"QUEUED":2`), []byte(`"QUEUED":5`), 1))
		}},
		{"subjobs without a batch", "belongs to no batch", func(tx *bolt.Tx) error {
			parent := testID(10)
			return errors.Join(bucket(tx, bucketJobs).Delete(parent[:]), bucket(tx, bucketJobsPrivate).Delete(parent[:]))
		}},
		{"name taken twice", "has another's name", func(tx *bolt.Tx) error {
			return bucket(tx, indexJobsName).Put(nameKey("lab", "job-1").id(testID(3)), nil)
		}},
		{"floor below a record", "above the floor", func(tx *bolt.Tx) error {
			return putFloor(tx, testID(2))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openSteps(t, path)
			putSample(t, s)
			closeStore(t, s)
			edit(t, path, tt.spoil)

			err := openSteps(t, path).Check(t.Context())
			switch {
			case tt.message == "" && err != nil:
				t.Errorf("a good database: %v", err)
			case tt.message != "" && (err == nil || !strings.Contains(err.Error(), tt.message)):
				t.Errorf("error %v, want it to say %q", err, tt.message)
			}
		})
	}
}

// putSample stores a queued job, an active one, a batch and an upload.
func putSample(t *testing.T, s *Store) {
	t.Helper()
	active := testJob(2)
	active.Status, active.Private.Claimed = app.Running, true
	parent := testJob(10)
	parent.Counts = &app.Counts{Queued: 2}
	rows := []*app.Job{testJob(11), testJob(12)}
	for _, j := range rows {
		j.Private.Batch = parent.ID
	}
	putJobs(t, s, testJob(1), active, parent, rows[0], rows[1])
	update(t, s, func(tx app.Tx) error {
		return tx.PutUpload(&app.Upload{
			ID: app.UploadID(jobText(50)), Organization: "lab",
			Folder: "inputs", Filename: "a", CompletedAt: unit.At(testID(51).Time()),
		})
	})
}

func TestCheckFindsDamagedPages(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Options{})
	putJobs(t, s, testJobs(300)...)
	var root int64
	err := s.db.View(func(tx *bolt.Tx) error {
		root = int64(tx.Bucket([]byte(indexJobsName)).Root())
		return nil
	})
	if err == nil {
		err = overwrite(s.db.Path(), root*4096, make([]byte, 4096))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "Page") {
		t.Errorf("error %v, want it to name the zeroed page", err)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJob(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
