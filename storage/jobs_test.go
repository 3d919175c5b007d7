package storage

import (
	"encoding/json"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
	"molrun/app/job/quota"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// goldenJob returns a job with every field set, so that the golden file covers them all.
func goldenJob() *app.Job {
	code, size := 3, int64(1234567)
	j := testJob(1)
	j.Status = app.Failed
	j.StatusReason = "waiting for 1 GPU"
	j.Inputs = []app.Input{{Setting: "fasta", FileID: jobIDText(5), Job: "other", Path: "out.pdb", Filename: "a.fasta", SHA256: "ab"}}
	j.Source = "hst5.fasta"
	j.Tags = map[string]string{"target": "6LU7"}
	j.Note = "Repeat."
	j.After, j.AfterAny = []string{"prep"}, true
	j.Batch = "screen"
	j.Isolation = "podman"
	j.Image = &protocol.Image{Name: "docker://lab/fold:1", ID: "sha256:ab"}
	j.ProgramVersion = "2022.5"
	j.Slurm = &app.ClusterJob{Job: "4711", Node: "n1", Partition: "long"}
	j.Warnings = []string{"Rg has not converged"}
	j.LeftOut = &app.LeftOut{Count: 2, Paths: []app.LeftOutPath{{Path: "latest", Reason: "a link that leads nowhere"}}}
	j.Priority = -3
	j.MaxRuntime = 86400
	j.StartedAt = unit.At(testID(2).Time())
	j.CompletedAt = unit.At(testID(3).Time())
	j.Attempts = 2
	j.Metrics = &app.Metrics{QueueSeconds: 1.5, RunSeconds: 61, CPUSeconds: 60.4, MaxRSSBytes: 1 << 20, Results: json.RawMessage(`{"rg_nm":1.316}`)}
	j.Failure = &app.Failure{Code: app.FailedExit, Message: "It failed.", ExitCode: &code, Signal: "SIGSEGV", LogTail: "no"}
	j.MemoryBytes = 2 << 30
	j.PastAttempts = []app.PastAttempt{{Attempt: 1, Code: app.FailedMemory, Message: "It ran out of memory.", MemoryBytes: 1 << 30, MaxRSSBytes: 1 << 30, RunSeconds: 61}}
	j.ResultBytes = &size
	j.Pinned = true
	j.Counts = &app.Counts{Queued: 1, Running: 2, Completed: 3, Failed: 4}
	j.Private = app.Private{
		Sent:            strings.Repeat("5e", 32),
		Meaning:         strings.Repeat("3e", 32),
		Normalized:      json.RawMessage(`{"steps":1}`),
		SetsMaxRuntime:  true,
		LimitOf:         "the partition main",
		Definition:      strings.Repeat("de", 32),
		Folder:          strings.Repeat("de", 32),
		Batch:           jobID(4),
		Row:             17,
		Varying:         []string{"steps"},
		QueuedAt:        unit.At(testID(2).Time()),
		LastEnd:         unit.At(testID(3).Time()),
		PinnedBy:        "carl@lab.example",
		Notify:          []string{"mailto:ann@lab.example", "https://hooks.lab.example/"},
		PinnedAt:        unit.At(testID(3).Time()),
		Spent:           quota.SpentAttempts{Ended: 2, RunMillis: 61000, CPUMillis: 60400, At: unit.At(testID(3).Time())},
		Needs:           placement.Resources{CPUs: 2, MemoryBytes: 1 << 30, GPUs: 1},
		Class:           "cg-idp 1 local 0a1b2c3d",
		Size:            1.5e6,
		Facts:           algorithm.Facts{"fasta": {"residues": 24}},
		Retries:         1,
		Lost:            1,
		References:      []app.Reference{{Setting: "fasta", Upload: app.UploadID(jobIDText(5)), Generation: 2, Job: jobID(6), Path: "out.pdb", Size: 99}},
		Waits:           []app.Dependency{{Job: jobID(7), Name: "prep", Any: true}},
		Cause:           jobID(7),
		KeepsDependants: true,
		Unpropagated:    true,
		Pending:         &app.PendingChange{Retry: true, By: "bob@lab.example", KeepsDependants: true, After: []byte{1, 0xff}, Left: 3},
		Claimed:         true,
		Stop:            true,
		StopBy:          "bob@lab.example",
		Token:           "70",
		Handle:          "4711",
		Worker:          "P1",
		Devices:         placement.Devices{GPUs: []string{"0"}, CPUs: []int{2, 3}},
	}
	return j
}

func jobIDText(n int) string { return testID(n).String() }

// TestRecordsKeepTheirFormat fails if a field of a stored record is renamed, which would
// lose it in existing databases.
func TestRecordsKeepTheirFormat(t *testing.T) {
	s := openAt(t, newPath(t), Options{})
	job := goldenJob()
	upload := &app.Upload{
		ID: app.UploadID(jobIDText(1)), Organization: "lab", Email: "ann@lab.example",
		Folder: "inputs", Filename: "a.pdb", ContentType: "chemical/x-pdb",
		CreatedAt: unit.At(testID(1).Time()), Generation: 2, Size: 99, SHA256: "ab", CRC32: 7,
		CompletedAt: unit.At(testID(2).Time()),
		Partial: &app.Partial{
			Generation: 3, Offset: 7, Length: new(int64(70)), Digest: []byte{1, 2}, CRC32: 9,
			Expected: map[string][]byte{"sha-256": {3}}, ReceivedAt: unit.At(testID(3).Time()),
		},
	}
	apiKey := &apikey.Key{
		ID: "abcdefghijkl", Hash: "ab", Organization: "lab", Email: "ann@lab.example",
		Role: apikey.Admin, Scopes: []apikey.Scope{apikey.ScopeRead}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Name: "dashboard", MadeBy: "aaaaaaaaaaaa", Disabled: true,
		CreatedAt: unit.At(testID(1).Time()), ExpiresAt: unit.At(testID(2).Time()),
		LastUsedAt: unit.At(testID(3).Time()), Successor: "mnopqrstuvwx",
	}
	user := &apikey.User{Organization: "lab", Email: "ann@lab.example", Role: apikey.Viewer, Disabled: true, CreatedAt: unit.At(testID(1).Time()), LastUsedAt: unit.At(testID(2).Time())}
	session := &apikey.Session{
		Holder: "abcdefghijkl", Hash: "ab",
		CreatedAt: unit.At(testID(1).Time()), ExpiresAt: unit.At(testID(2).Time()), LastUsedAt: unit.At(testID(3).Time()),
	}
	share := &app.Share{
		ID: app.ShareID(jobIDText(1)), Hash: "ab", Organization: "lab", Email: "ann@lab.example", KeyID: "abcdefghijkl",
		Job: jobID(1), JobName: "hst5", Files: app.Selection{"a.txt", "models/"},
		CreatedAt: unit.At(testID(1).Time()), ExpiresAt: unit.At(testID(2).Time()), LastUsedAt: unit.At(testID(3).Time()),
	}
	update(t, s, func(tx app.Tx) error {
		return errors.Join(tx.PutJob(job), tx.PutUpload(upload), tx.PutKey(apiKey), tx.PutShare(share), tx.PutUser(user), tx.PutSession(session))
	})

	for _, record := range []any{*job, job.Private, *upload, *apiKey, *share, *user, *session} {
		for field, value := range reflect.ValueOf(record).Fields() {
			if value.IsZero() {
				t.Errorf("%T.%s is empty here, so its name is not tested", record, field.Name)
			}
		}
	}
	id := testID(1)
	for _, tt := range []struct {
		bucket string
		key    []byte
		read   func(app.Tx) (any, error)
		want   any
	}{
		{bucketJobs, id[:], func(tx app.Tx) (any, error) { return tx.Job(job.ID) }, job},
		{bucketJobsPrivate, id[:], func(tx app.Tx) (any, error) { return tx.Job(job.ID) }, job},
		{bucketUploads, id[:], func(tx app.Tx) (any, error) { return tx.Upload(upload.ID) }, upload},
		{bucketShares, id[:], func(tx app.Tx) (any, error) { return tx.Share(share.ID) }, share},
		{bucketUsers, userKey("lab", "ann@lab.example"), func(tx app.Tx) (any, error) { return tx.User("lab", "ann@lab.example") }, user},
		{bucketSessions, sessionKey("abcdefghijkl", "ab"), func(tx app.Tx) (any, error) { return tx.Session("abcdefghijkl", "ab") }, session},
		{bucketKeys, []byte(apiKey.ID), func(tx app.Tx) (any, error) { return tx.Key(apiKey.ID) }, apiKey},
	} {
		t.Run(tt.bucket, func(t *testing.T) {
			file := filepath.Join("testdata", tt.bucket+".json")
			view(t, s, func(atx app.Tx) error {
				stored := atx.(tx).Bucket(tt.bucket).Get(tt.key)
				if *rewrite {
					return os.WriteFile(file, append(stored[:len(stored):len(stored)], '\n'), 0o644)
				}
				golden, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				must.Equal(t, "the stored format, without which existing records can't be read", string(stored), strings.TrimSuffix(string(golden), "\n"))
				got, err := tt.read(atx)
				wantSame(t, "the record", got, err, tt.want)
				return nil
			})
		})
	}
}

func TestReturnedRecordsBelongToTheCaller(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJob(1))
	update(t, s, func(tx app.Tx) error {
		j, jobErr := tx.Job(jobID(1))
		shown, shownErr := tx.JobJSON(jobID(1))
		page, pageErr := tx.Jobs(app.JobFilter{Organization: "lab"}, "", 1)
		must.OK(t, errors.Join(jobErr, shownErr, pageErr))
		clear(j.Settings)
		clear(shown)
		clear(page.Jobs[0].JSON)
		return nil
	})
	view(t, s, func(tx app.Tx) error {
		j, err := tx.Job(jobID(1))
		must.Equal(t, "the record after a change of what was returned", j, testJob(1))
		return err
	})
}

// The batch has more rows than fit on a page of the database.
func TestRowsMayBeChangedDuringAWalk(t *testing.T) {
	s := openNew(t)
	const rows = 300
	parent := testJob(0)
	parent.Counts = &app.Counts{Queued: rows}
	all := []*app.Job{parent}
	for n := range rows {
		j := testJob(n + 1)
		j.Private.Batch, j.Private.Row = parent.ID, n
		all = append(all, j)
	}
	putJobs(t, s, all...)

	walk := func(status app.Status, change func(app.Tx, *app.Job) error, last func(app.Tx) error) {
		t.Helper()
		update(t, s, func(tx app.Tx) error {
			walked := 0
			for j, err := range tx.Subjobs(parent.ID, status) {
				must.OK(t, err)
				if j.Private.Row != walked {
					t.Fatalf("row %d, want %d", j.Private.Row, walked)
				}
				walked++
				must.OK(t, change(tx, j))
			}
			must.Equal(t, "rows that were changed", walked, rows)
			return last(tx)
		})
		checkStore(t, s)
	}
	walk(app.Queued, func(tx app.Tx, j *app.Job) error {
		j.Status = app.Failed
		return tx.PutJob(j)
	}, func(tx app.Tx) error {
		parent.Counts = &app.Counts{Failed: rows}
		return tx.PutJob(parent)
	})
	walk("", func(tx app.Tx, j *app.Job) error { return tx.DeleteJob(j.ID) },
		func(tx app.Tx) error { return tx.DeleteJob(parent.ID) })
}

func TestFolderIsNeededUntilAJobHasCompleted(t *testing.T) {
	s := openAt(t, newPath(t), Options{})
	needed, other := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	job := goldenJob()
	job.Private.Folder = needed
	for _, tt := range []struct {
		status app.Status
		digest string
		needed bool
	}{
		{app.Queued, needed, true},
		{app.Queued, other, false},
		{app.Queued, needed[:63], false},
		{app.Queued, strings.Repeat("x", 64), false},
		{app.Queued, "", false},
		{app.Failed, needed, true},
		{app.Completed, needed, false},
	} {
		job.Status = tt.status
		putJobs(t, s, job)
		view(t, s, func(tx app.Tx) error {
			id, err := tx.NeededBy(tt.digest)
			if tt.needed && (id != job.ID || err != nil) || !tt.needed && !errors.Is(err, fault.NotFound) {
				t.Errorf("with a job that is %s, %q is needed by %s, %v", tt.status, tt.digest, id, err)
			}
			return nil
		})
	}
}

// bbolt's cursors fail on leaf pages emptied by the same transaction.
func TestListingInTheTransactionThatEmptiedIt(t *testing.T) {
	for _, kept := range []int{0, 1} {
		s := openNew(t)
		putJobs(t, s, testJobs(500)...)
		update(t, s, func(tx app.Tx) error {
			for n := kept; n < 500; n++ {
				must.OK(t, tx.DeleteJob(jobID(n)))
			}
			page, err := tx.Jobs(app.JobFilter{Organization: "lab"}, "", 50)
			must.Equal(t, "jobs listed", len(page.Jobs), kept)
			return err
		})
	}
}
