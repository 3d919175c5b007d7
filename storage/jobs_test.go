package storage

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
	"molrun/app/job/spent"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// goldenJob has a value in every field, so that each of them is in the file.
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
	j.Priority = -3
	j.MaxRuntime = 86400
	j.StartedAt = unit.At(testID(2).Time())
	j.CompletedAt = unit.At(testID(3).Time())
	j.Attempts = 2
	j.Metrics = &app.Metrics{QueueSeconds: 1.5, RunSeconds: 61, CPUSeconds: 60.4, MaxRSSBytes: 1 << 20, Results: json.RawMessage(`{"rg_nm":1.316}`)}
	j.Failure = &app.Failure{Code: app.FailedExit, Message: "It failed.", ExitCode: &code, Signal: "SIGSEGV", LogTail: "no"}
	j.ResultBytes = &size
	j.Pinned = true
	j.Counts = &app.Counts{Queued: 1, Running: 2, Completed: 3, Failed: 4}
	j.Private = app.Private{
		Sent:       strings.Repeat("5e", 32),
		Meaning:    strings.Repeat("3e", 32),
		Normalized: json.RawMessage(`{"steps":1}`),
		AsksTime:   true,
		LimitOf:    "the partition main",
		Definition: strings.Repeat("de", 32),
		Folder:     strings.Repeat("de", 32),
		Batch:      jobID(4),
		Row:        17,
		Varying:    []string{"steps"},
		QueuedAt:   unit.At(testID(2).Time()),
		PinnedBy:   "carl@lab.example",
		Notify:     []string{"mailto:ann@lab.example", "https://hooks.lab.example/"},
		PinnedAt:   unit.At(testID(3).Time()),
		Spent:      spent.Attempts{Ended: 2, RunMillis: 61000, CPUMillis: 60400, At: unit.At(testID(3).Time())},
		Needs:      placement.Resources{CPUs: 2, MemoryBytes: 1 << 30, GPUs: 1},
		Class:      "cg-idp 1 local 0a1b2c3d",
		Size:       1.5e6,
		Facts:      algorithm.Facts{"fasta": {"residues": 24}},
		Retries:    1,
		Lost:       1,
		References: []app.Reference{{Setting: "fasta", Upload: app.UploadID(jobIDText(5)), Generation: 2, Job: jobID(6), Path: "out.pdb", Size: 99}},
		Waits:      []app.Dependency{{Job: jobID(7), Name: "prep", Any: true}},
		Cause:      jobID(7),
		Spares:     true,
		Unsettled:  true,
		Claimed:    true,
		Stop:       true,
		StopBy:     "bob@lab.example",
		Token:      "70",
		Handle:     "4711",
		Pilot:      "P1",
		Devices:    placement.Devices{GPUs: []string{"0"}, CPUs: []int{2, 3}},
	}
	return j
}

func jobIDText(n int) string { return testID(n).String() }

// TestRecordsKeepTheirFormat fails if a field of a stored record is renamed:
// existing databases would lose it.
func TestRecordsKeepTheirFormat(t *testing.T) {
	s := openAt(t, newPath(t), Options{})
	job := goldenJob()
	upload := &app.Upload{
		ID: app.UploadID(jobIDText(1)), Organization: "lab", Email: "ann@lab.example",
		Folder: "inputs", Filename: "a.pdb", ContentType: "chemical/x-pdb",
		CreatedAt: unit.At(testID(1).Time()), Generation: 2, Size: 99, SHA256: "ab", CRC32: new(uint32(7)),
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
				if diff := gocmp.Diff(strings.TrimSuffix(string(golden), "\n"), string(stored)); diff != "" {
					t.Errorf("the stored format changed: existing records could not be read\n%s", diff)
				}
				got, err := tt.read(atx)
				if diff := differ(tt.want, got); err != nil || diff != "" {
					t.Errorf("it reads differently: %v\n%s", err, diff)
				}
				return nil
			})
		})
	}
}

// TestPrivatePartsOfSchema5AreRead reads one without a head, as it was stored then.
func TestPrivatePartsOfSchema5AreRead(t *testing.T) {
	s := openAt(t, newPath(t), Options{}) // the golden job is in several states at once
	want := goldenJob()
	want.Private.Sent, want.Private.Meaning, want.Private.Definition, want.Private.Folder = "5e", "3e", "de", strings.Repeat("f0", 32)
	stored, err := os.ReadFile("testdata/jobs.private.schema-5.json")
	must.OK(t, err)
	update(t, s, func(tx app.Tx) error {
		e, err := want.Encoded()
		e.Private = stored
		return errors.Join(err, tx.PutEncoded(e))
	})
	for range 2 { // as it was stored, and stored again
		view(t, s, func(tx app.Tx) error {
			got, err := tx.Job(want.ID)
			if diff := differ(want, got); err != nil || diff != "" {
				t.Errorf("it reads differently: %v\n%s", err, diff)
			}
			return nil
		})
		update(t, s, func(tx app.Tx) error { return tx.PutJob(want) })
	}
}

func TestReturnedRecordsBelongToTheCaller(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJob(1))
	update(t, s, func(tx app.Tx) error {
		j, err := tx.Job(jobID(1))
		if err != nil {
			return err
		}
		shown, err := tx.JobJSON(jobID(1))
		if err != nil {
			return err
		}
		page, err := tx.Jobs(app.JobFilter{Organization: "lab"}, "", 1)
		if err != nil {
			return err
		}
		clear(j.Settings)
		clear(shown)
		clear(page.Jobs[0].JSON)
		return nil
	})
	view(t, s, func(tx app.Tx) error {
		j, err := tx.Job(jobID(1))
		if diff := gocmp.Diff(testJob(1), j); diff != "" {
			t.Errorf("changing a returned record changed the store: %s", diff)
		}
		return err
	})
}

func TestBadRecordsAreRefused(t *testing.T) {
	s := openNew(t)
	for name, spoil := range map[string]func(*app.Job){
		"no ID":           func(j *app.Job) { j.ID = "" },
		"no status":       func(j *app.Job) { j.Status = "" },
		"invalid batch":   func(j *app.Job) { j.Private.Batch = "screen" },
		"empty reference": func(j *app.Job) { j.Private.References = []app.Reference{{Setting: "fasta"}} },
		"bad settings":    func(j *app.Job) { j.Settings = json.RawMessage("{") },
		"too long a name": func(j *app.Job) { j.Name = strings.Repeat("a", 70000) },
	} {
		j := testJob(1)
		spoil(j)
		err := s.Update(t.Context(), func(tx app.Tx) error { return tx.PutJob(j) })
		if err == nil {
			t.Errorf("%s: it was stored", name)
		}
	}
}

// After each page, the last job of the page is deleted and a newer one added.
func TestCursorStaysValidWhileJobsComeAndGo(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJobs(30)...)
	var seen []app.JobID
	var last app.JobID
	var next app.Position
	for more := true; more; {
		view(t, s, func(tx app.Tx) error {
			page, err := tx.Jobs(app.JobFilter{Organization: "lab", Type: "echo"}, next, 4)
			if err != nil {
				return err
			}
			for _, j := range page.Jobs {
				seen = append(seen, j.ID)
			}
			last, next, more = seen[len(seen)-1], page.Next, page.Next != ""
			return nil
		})
		update(t, s, func(tx app.Tx) error {
			return errors.Join(tx.DeleteJob(last), tx.PutJob(testJob(1000+len(seen))))
		})
	}
	if len(seen) != 30 {
		t.Fatalf("%d jobs seen, want the 30 that were there", len(seen))
	}
	for i, id := range seen {
		if want := jobID(29 - i); id != want {
			t.Errorf("position %d has %s, want %s", i, id, want)
		}
	}
}

// The batch has more rows than a page of the database holds.
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

	walked := 0
	update(t, s, func(tx app.Tx) error {
		walked = 0
		for j, err := range tx.Subjobs(parent.ID, app.Queued) {
			if err != nil {
				return err
			}
			if j.Private.Row != walked {
				t.Fatalf("row %d, want %d", j.Private.Row, walked)
			}
			walked++
			j.Status = app.Failed
			if err := tx.PutJob(j); err != nil {
				return err
			}
		}
		parent.Counts = &app.Counts{Failed: rows}
		return tx.PutJob(parent)
	})
	if walked != rows {
		t.Errorf("%d rows were cancelled, want %d", walked, rows)
	}
	checkStore(t, s)

	update(t, s, func(tx app.Tx) error {
		walked = 0
		for j, err := range tx.Subjobs(parent.ID, "") {
			if err != nil {
				return err
			}
			walked++
			if err := tx.DeleteJob(j.ID); err != nil {
				return err
			}
		}
		return tx.DeleteJob(parent.ID)
	})
	if walked != rows {
		t.Errorf("%d rows were deleted, want %d", walked, rows)
	}
}

// bbolt's cursors fail on leaves that the same transaction has emptied.
func TestListingInTheTransactionThatEmptiedIt(t *testing.T) {
	for _, kept := range []int{0, 1} {
		t.Run(fmt.Sprint(kept, " kept"), func(t *testing.T) {
			s := openNew(t)
			putJobs(t, s, testJobs(500)...)
			update(t, s, func(tx app.Tx) error {
				for n := kept; n < 500; n++ {
					if err := tx.DeleteJob(jobID(n)); err != nil {
						return err
					}
				}
				page, err := tx.Jobs(app.JobFilter{Organization: "lab"}, "", 50)
				if len(page.Jobs) != kept {
					t.Errorf("%d jobs are listed, want %d", len(page.Jobs), kept)
				}
				return err
			})
		})
	}
}

func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := openAt(b, filepath.Join(b.TempDir(), "jobs.db"), Options{})
			next := make(chan int)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for n := range next {
						j := benchJob(n)
						err := s.Update(context.Background(), func(tx app.Tx) error {
							if _, err := tx.JobNamed(j.Organization, j.Name); !errors.Is(err, fault.NotFound) {
								return fmt.Errorf("name taken: %w", err)
							}
							return tx.PutJob(j)
						})
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				next <- n
			}
			close(next)
			all.Wait()
			if info, err := os.Stat(s.Path()); err == nil {
				b.ReportMetric(float64(info.Size())/float64(b.N), "file-B/op")
			}
		})
	}
}

// BenchmarkSubmitBatch puts a batch of the maximum size in one transaction.
func BenchmarkSubmitBatch(b *testing.B) {
	s := openAt(b, filepath.Join(b.TempDir(), "jobs.db"), Options{})
	const rows = 10_000
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		parent := benchJob(n * (rows + 1))
		parent.Counts = &app.Counts{Queued: rows}
		update(b, s, func(tx app.Tx) error {
			if err := tx.PutJob(parent); err != nil {
				return err
			}
			for row := range rows {
				j := benchJob(n*(rows+1) + row + 1)
				j.Private.Batch, j.Private.Row = parent.ID, row
				if err := tx.PutJob(j); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// benchJob returns a job of the usual size: 500 bytes shown, 300 private.
func benchJob(n int) *app.Job {
	j := testJob(n)
	j.Settings = json.RawMessage(fmt.Sprintf(`{"fasta":"inputs/hst5.fasta","steps":1000000,"seed":%d}`, n))
	j.Inputs = []app.Input{{Setting: "fasta", FileID: jobIDText(1), Filename: "hst5.fasta", SHA256: strings.Repeat("ab", 32)}}
	j.Private.Sent, j.Private.Meaning = strings.Repeat("5e", 32), strings.Repeat("3e", 32)
	j.Private.Normalized = j.Settings
	j.Private.References = []app.Reference{{Setting: "fasta", Upload: app.UploadID(jobIDText(1)), Generation: 1, Size: 100}}
	return j
}

func BenchmarkList(b *testing.B) {
	for _, size := range []struct {
		name string
		jobs int
	}{{"1k", 1_000}, {"100k", 100_000}} {
		b.Run(size.name, func(b *testing.B) { benchmarkList(b, size.jobs) })
	}
}

func benchmarkList(b *testing.B, jobs int) {
	s := openAt(b, filepath.Join(b.TempDir(), "jobs.db"), Options{})
	for from := 0; from < jobs; from += 1000 {
		update(b, s, func(tx app.Tx) error {
			for n := range 1000 {
				j := benchJob(from + n)
				if n%10 == 0 {
					j.Tags = map[string]string{"target": "6LU7"}
				}
				if err := tx.PutJob(j); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, listing := range []struct {
		name   string
		filter app.JobFilter
		rows   int
	}{
		{"page", app.JobFilter{Organization: "lab"}, 50},
		{"filtered", app.JobFilter{Organization: "lab", Email: "ann@lab.example", Statuses: []app.Status{app.Queued}}, 50},
		{"none", app.JobFilter{Organization: "lab", Statuses: []app.Status{app.Failed}}, 0},
		{"statuses", app.JobFilter{Organization: "lab", Statuses: []app.Status{app.Queued, app.Running, app.Failed}}, 50},
		{"tag", app.JobFilter{Organization: "lab", Tags: []app.Tag{{Key: "target", Value: "6LU7"}}}, 50},
		{"tag and type", app.JobFilter{Organization: "lab", Tags: []app.Tag{{Key: "target", Value: "6LU7"}}, Type: "echo"}, 50},
		{"search", app.JobFilter{Organization: "lab", Search: "6lu7"}, 50},
		{"search in vain", app.JobFilter{Organization: "lab", Search: "absent"}, 0},
	} {
		b.Run(listing.name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				err := s.View(context.Background(), func(tx app.Tx) error {
					after := positionOf(listing.filter, &app.Job{ID: jobID(jobs - n%(jobs/2))})
					page, err := tx.Jobs(listing.filter, after, 50)
					if len(page.Jobs) != listing.rows {
						b.Errorf("%d rows, want %d", len(page.Jobs), listing.rows)
					}
					return err
				})
				must.OK(b, err)
			}
		})
	}
}

func TestFolderIsNeededUntilAJobHasCompleted(t *testing.T) {
	s := openAt(t, newPath(t), Options{})
	needed, other := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	job := goldenJob()
	job.Status, job.Private.Folder = app.Queued, needed
	update(t, s, func(tx app.Tx) error { return tx.PutJob(job) })
	neededBy := func(digest string) (id app.JobID, err error) {
		view(t, s, func(tx app.Tx) error {
			id, err = tx.NeededBy(digest)
			return nil
		})
		return id, err
	}
	if id, err := neededBy(needed); id != job.ID || err != nil {
		t.Errorf("%s, %v", id, err)
	}
	for _, digest := range []string{other, needed[:63], strings.Repeat("x", 64), ""} {
		if id, err := neededBy(digest); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s is needed by %s, %v", digest, id, err)
		}
	}
	for _, status := range []app.Status{app.Failed, app.Completed} {
		done := goldenJob()
		done.Status, done.Private.Folder = status, needed
		update(t, s, func(tx app.Tx) error { return tx.PutJob(done) })
		if id, err := neededBy(needed); errors.Is(err, fault.NotFound) != (status == app.Completed) {
			t.Errorf("the folder of a job that is %s is needed by %s, %v", status, id, err)
		}
	}
}
