package storage

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
	"molrun/storage/kv"
)

// damages lists ways to damage the sample, with the problems that a check reports. Only
// damage to derived data is repairable.
var damages = []struct {
	name, message string
	repairable    bool
	damage        func(*bolt.Tx) error
}{
	{"nothing", "", true, func(*bolt.Tx) error { return nil }},
	{"lost index entry", "jobs.lists is missing an entry", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, indexJobsList).Delete(firstKey(tx, indexJobsList))
	}},
	{"stray index entry", "jobs.claimed has 2 entries, its records have 1", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, indexJobsClaimed).Put(key(1), nil)
	}},
	{"wrong value in the queue", "jobs.queue has a wrong value", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, indexJobsQueue).Put(firstKey(tx, indexJobsQueue), []byte{2, 2, 2})
	}},
	{"missing index", "uploads.name is missing", true, func(tx *bolt.Tx) error {
		return tx.DeleteBucket([]byte(indexUploadsName))
	}},
	{"missing records", "the records uploads are missing", false, func(tx *bolt.Tx) error {
		return tx.DeleteBucket([]byte(bucketUploads))
	}},
	{"wrong sum", `is 9 jobs`, true, func(tx *bolt.Tx) error {
		return bucketOf(tx, sumJobsTotal).Put(firstKey(tx, sumJobsTotal), appendUsage(nil, app.Usage{Jobs: 9, Queued: 9}))
	}},
	{"lost sum", "is missing, its records add up to", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, sumUploadsUsage).Delete(firstKey(tx, sumUploadsUsage))
	}},
	{"sum without records", `is 1 job (`, true, func(tx *bolt.Tx) error {
		return bucketOf(tx, sumJobsUsage).Put([]byte("stray"), appendUsage(nil, app.Usage{Jobs: 1}))
	}},
	{"malformed sum", "the sum uploads.total of", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, sumUploadsTotal).Put(firstKey(tx, sumUploadsTotal), []byte{1})
	}},
	{"unfinished job that retention would delete", "jobs.finished has", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, indexJobsFinished).Put(finishedKey("lab", "", app.Failed, false).Time(testID(1).Time()).ID(testID(1)), nil)
	}},
	{"deleted upload in the index", "uploads.name has", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, bucketUploads).Delete(key(50))
	}},
	{"private part of no job", ": no job for ", false, func(tx *bolt.Tx) error {
		return bucketOf(tx, bucketJobsPrivate).Put(key(9), []byte("{}"))
	}},
	{"lost private part", "read the private part", false, func(tx *bolt.Tx) error {
		return bucketOf(tx, bucketJobsPrivate).Delete(key(1))
	}},
	{"record that is not JSON", "read the record", false, func(tx *bolt.Tx) error {
		return errors.Join(bucketOf(tx, bucketJobs).Put(key(1), []byte("{")), bucketOf(tx, indexJobsClaimed).Put(key(1), nil))
	}},
	{"changed bit in a record", ": checksum mismatch in ", false, func(tx *bolt.Tx) error {
		return editRecord(tx, 1, "job-1", "job-0")
	}},
	{"lost checksum", "jobs.checksum lacks", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, "jobs.checksum").Delete(key(1))
	}},
	{"lost count of what was spent", "is missing 1 uploads", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, spentByUploads).Delete(firstKey(tx, spentByUploads))
	}},
	{"record with another ID", "stored under a different ID", false, func(tx *bolt.Tx) error {
		return editRecord(tx, 1, jobIDText(1), jobIDText(2))
	}},
	{"unknown status", `has status "LOST"`, false, func(tx *bolt.Tx) error {
		return editRecord(tx, 1, "QUEUED", "LOST")
	}},
	{"running job without a claim", "running but not claimed", false, func(tx *bolt.Tx) error {
		return editRecord(tx, 1, "QUEUED", "RUNNING")
	}},
	{"wrong count", "counts 5 queued, 0 running", true, func(tx *bolt.Tx) error {
		return editRecord(tx, 10, `"QUEUED":2`, `"QUEUED":5`)
	}},
	{"subjobs without a batch", "no batch for subjob", false, func(tx *bolt.Tx) error {
		return errors.Join(bucketOf(tx, bucketJobs).Delete(key(10)), bucketOf(tx, bucketJobsPrivate).Delete(key(10)))
	}},
	{"name in the index twice", "has the same name as another job", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, indexJobsName).Put(nameKey("lab", "job-1").ID(testID(3)), nil)
	}},
	{"missing users", "the records users are missing", false, func(tx *bolt.Tx) error {
		return tx.DeleteBucket([]byte(bucketUsers))
	}},
	{"user with another role", "checksum mismatch in the record of user ann@lab.example", false, func(tx *bolt.Tx) error {
		return replace(tx, bucketUsers, userKey("lab", "ann@lab.example"), "viewer", "member")
	}},
	{"user under another name", "is stored under a different key", false, func(tx *bolt.Tx) error {
		return bucketOf(tx, bucketUsers).Put(userKey("lab", "bob@lab.example"), bucketOf(tx, bucketUsers).Get(firstKey(tx, bucketUsers)))
	}},
	{"user that is not JSON", "read user", false, func(tx *bolt.Tx) error {
		return bucketOf(tx, bucketUsers).Put(firstKey(tx, bucketUsers), []byte("{"))
	}},
	{"floor below a record", "above the high-water mark", true, func(tx *bolt.Tx) error {
		return bucketOf(tx, kv.Meta).Put([]byte("floor"), key(2))
	}},
}

func key(n int) []byte {
	id := testID(n)
	return id[:]
}

func bucketOf(tx *bolt.Tx, name string) *bolt.Bucket { return tx.Bucket([]byte(name)) }

func firstKey(tx *bolt.Tx, name string) []byte {
	k, _ := bucketOf(tx, name).Cursor().First()
	return bytes.Clone(k)
}

func editRecord(tx *bolt.Tx, n int, old, now string) error {
	return replace(tx, bucketJobs, key(n), old, now)
}

// replace replaces a substring of a value.
func replace(tx *bolt.Tx, bucket string, key []byte, old, now string) error {
	value := bucketOf(tx, bucket).Get(key)
	if !bytes.Contains(value, []byte(old)) {
		return errors.New("the record has no " + old)
	}
	return bucketOf(tx, bucket).Put(key, bytes.Replace(value, []byte(old), []byte(now), 1))
}

// damaged returns the path of a closed store with a damaged sample.
func damaged(t *testing.T, damage func(*bolt.Tx) error) string {
	t.Helper()
	path := newPath(t)
	s := openAt(t, path, Options{})
	putSample(t, s)
	must.OK(t, s.Close())
	edit(t, path, damage)
	return path
}

func TestWalksOfASnapshotTellThatTheyWereCutShort(t *testing.T) {
	r, err := OpenReadOnly(damaged(t, func(*bolt.Tx) error { return nil }))
	must.OK(t, err)
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got []error
	for _, err := range r.Jobs(ctx) {
		got = append(got, err)
	}
	if len(got) != 1 || !errors.Is(got[0], context.Canceled) {
		t.Errorf("errors %v", got)
	}
}

// A repair rebuilds derived data from records and changes nothing else.
func TestCheckReportsDamageAndRepairFixesDerivedData(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			path := damaged(t, tt.damage)
			wantFound := func(found string) {
				t.Helper()
				if !strings.Contains(found, tt.message) || tt.message == "" && found != "" {
					t.Errorf("found %q, want %q", found, tt.message)
				}
			}
			wantFound(problems(t, path))
			if !strings.HasPrefix(tt.name, "missing") { // Open would rebuild it or fail
				s := openAt(t, path, Options{})
				wantFound(textOf(s.Check(t.Context())))
				must.OK(t, s.Close())
			}

			report, err := Repair(t.Context(), path, Options{})
			if !tt.repairable {
				if err == nil && (report.Derivable > 0 || report.Count == 0 || !strings.Contains(report.Err().Error(), tt.message)) {
					t.Errorf("afterwards %+v, want only %q", report, tt.message)
				}
				return
			}
			if err != nil || report.Count > 0 {
				t.Fatalf("afterwards %+v, %v", report, err)
			}
			checkStore(t, openAt(t, path, Options{}))
			if tt.message != "" {
				before, err := OpenReadOnly(path + ".before-repair")
				must.OK(t, err)
				must.OK(t, before.Close())
			}
		})
	}
}

// textOf returns the message of an error, or "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// putSample stores a queued job, an active one, a batch, an upload and a user.
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
		return errors.Join(
			tx.PutUpload(&app.Upload{
				ID: app.UploadID(jobIDText(50)), Organization: "lab",
				Folder: "inputs", Filename: "a", CompletedAt: unit.At(testID(51).Time()),
			}),
			tx.PutUser(&apikey.User{Organization: "lab", Email: "ann@lab.example", Role: apikey.Viewer}),
		)
	})
}
