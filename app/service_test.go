package app_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/apikey"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/retention"
	"molrun/app/routing"
	"molrun/app/strictjson"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
)

// echoFile is an algorithm with a file, a default and a validator-free command.
const echoFile = `
format = 1
type = "echo"
version = "1"
title = "Print the settings"
retries = 1
command = ["sh", "-c", "cat"]

[[parameters]]
name = "steps"
type = "integer"
minimum = 1
default = 10

[[parameters]]
name = "input"
file = [".txt"]
`

// site is a service on a real store and real files, with a clock of its own.
type site struct {
	*app.Service
	Retention *retention.Keeper // set by keeping
	t         *testing.T
	store     *storage.Store
	files     *blobs.Dir
	mu        sync.Mutex
	time      time.Time
}

var (
	ann   = app.Caller{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member}
	bob   = app.Caller{Organization: "lab", Email: "bob@lab.example", Role: apikey.Member}
	chief = app.Caller{Organization: "lab", Email: "chief@lab.example", Role: apikey.Admin}
	eve   = app.Caller{Organization: "other", Email: "ann@lab.example", Role: apikey.Admin}
)

func newSite(t *testing.T, definitions ...string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, time: time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)}
	secret, err := link.LoadSecret(dir)
	must(t, err)
	s.files, err = blobs.Open(dir, blobs.Options{Now: s.now, Secret: secret, Log: zerolog.Nop()})
	must(t, err)
	s.store, err = storage.Open(filepath.Join(dir, "jobs.db"), storage.Options{Fatal: func(err error) { t.Error(err) }})
	must(t, err)
	t.Cleanup(func() {
		if err := s.store.Check(context.Background()); err != nil {
			t.Errorf("check of the store: %v", err)
		}
		must(t, s.store.Close())
		must(t, s.files.Close())
	})
	s.Service = s.with(append([]string{echoFile}, definitions...)...)
	s.Retention = retention.New(s.store, s.files, s.Jobs, retention.Options{Now: s.now})
	return s
}

// with gives a service on the same data with other algorithms.
func (s *site) with(definitions ...string) *app.Service {
	s.t.Helper()
	return s.on(s.store, definitions...)
}

// on gives a service on another way to the same data.
func (s *site) on(store app.Store, definitions ...string) *app.Service {
	s.t.Helper()
	service, err := app.NewService(store, s.files, s.catalogue(definitions), app.Options{
		Now: s.now, CursorKey: make([]byte, 32), UploadTTL: time.Hour,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: 8 << 30, Local: true}}},
	})
	must(s.t, err)
	return service
}

// catalogue reads algorithm files.
func (s *site) catalogue(definitions []string) *algorithm.Catalogue {
	s.t.Helper()
	var all []*algorithm.File
	for i, text := range definitions {
		a, mistakes := algorithm.Parse(fmt.Sprintf("%d.toml", i), []byte(text))
		for _, m := range mistakes {
			s.t.Fatal(m)
		}
		all = append(all, a)
	}
	catalogue, err := algorithm.NewCatalogue(all)
	must(s.t, err)
	return catalogue
}

func (s *site) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(time.Millisecond)
	return s.time
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func value(t *testing.T, text string) *strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text))
	must(t, err)
	return v
}

// submission is a request for an echo job as web makes it of a body.
func submission(t *testing.T, name, settings string) app.Submission {
	t.Helper()
	body := value(t, fmt.Sprintf(`{"jobName":%q,"type":"echo","settings":%s}`, name, settings))
	return app.Submission{Name: name, Type: "echo", Settings: body.Member("settings"), Body: body}
}

func batchSubmission(t *testing.T, name string, rows ...string) app.BatchSubmission {
	t.Helper()
	body := value(t, fmt.Sprintf(`{"batchName":%q,"type":"echo","settings":[%s]}`, name, joined(rows)))
	return app.BatchSubmission{Name: name, Type: "echo", Rows: body.Member("settings").Items, Body: body}
}

func joined(rows []string) string {
	return string(bytes.Join(slices.Collect(func(yield func([]byte) bool) {
		for _, r := range rows {
			if !yield([]byte(r)) {
				return
			}
		}
	}), []byte(",")))
}

// view is what tests read of a record.
type view struct {
	app.Job
	Subjobs []json.RawMessage `json:"subjobs"`
}

func (s *site) job(by app.Caller, name string) view {
	s.t.Helper()
	rec, err := s.Jobs.Get(s.t.Context(), by, name, 0)
	must(s.t, err)
	return read(s.t, rec)
}

func read(t *testing.T, rec app.Record) view {
	t.Helper()
	var v view
	must(t, json.Unmarshal(rec, &v))
	return v
}

func (s *site) submit(by app.Caller, name, settings string) view {
	s.t.Helper()
	rec, created, err := s.Jobs.Submit(s.t.Context(), by, submission(s.t, name, settings))
	must(s.t, err)
	if !created {
		s.t.Fatalf("job %q was there already", name)
	}
	return read(s.t, rec)
}

// run takes a job through an attempt that ends with e.
func (s *site) run(id app.JobID, e app.Ending) {
	s.t.Helper()
	ctx := s.t.Context()
	j, err := s.Runs.Claim(ctx, id, nil)
	must(s.t, err)
	start := s.now()
	must(s.t, s.Runs.Started(ctx, id, j.Attempts, start))
	if e.Outcome != nil {
		e.Outcome.StartedAt, e.Outcome.EndedAt = start, start.Add(time.Minute)
	}
	must(s.t, s.Runs.Finish(ctx, id, j.Attempts, e))
}

func done() app.Ending {
	return app.Ending{Outcome: &app.Outcome{Cause: app.CauseDone}, ResultBytes: 7}
}

func broken() app.Ending {
	return app.Ending{
		Outcome: &app.Outcome{Cause: app.CauseExit, ExitCode: 1},
		Failure: &app.Failure{Code: app.FailedExit, Message: "The program ended with exit status 1."},
	}
}

// upload makes a completed upload with real bytes.
func (s *site) upload(by app.Caller, filename, text string) *app.Upload {
	s.t.Helper()
	ctx := s.t.Context()
	grant, err := s.Files.Create(ctx, by, app.UploadRequest{Filename: filename})
	must(s.t, err)
	generation, _, err := s.Files.BeginUpload(ctx, grant.Upload.ID, -1)
	must(s.t, err)
	path := s.files.UploadPath(grant.Upload.ID, generation)
	must(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(s.t, os.WriteFile(path, []byte(text), 0o600))
	sum := sha256.Sum256([]byte(text))
	_, err = s.Files.FinishUpload(ctx, grant.Upload.ID, app.StoredFile{Generation: generation, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
	must(s.t, err)
	u, err := s.Files.Complete(ctx, by, string(grant.Upload.ID), nil)
	must(s.t, err)
	return u
}

func TestSameWorkUnderANameIsOneJob(t *testing.T) {
	s := newSite(t)
	first := s.submit(ann, "a", `{"steps":10}`)
	for _, settings := range []string{`{"steps":10}`, `{ "steps" : 1e1 }`, `{}`, `{"steps":10.0}`} {
		rec, created, err := s.Jobs.Submit(t.Context(), bob, submission(t, "a", settings))
		if err != nil || created || read(t, rec).ID != first.ID {
			t.Errorf("settings %s: created %v, %v; want job %s", settings, created, err, first.ID)
		}
	}
	_, _, err := s.Jobs.Submit(t.Context(), ann, submission(t, "a", `{"steps":11}`))
	if !errors.Is(err, fault.JobAlreadyExists) {
		t.Errorf("other settings: %v, want JOB_ALREADY_EXISTS", err)
	}
}

func TestSameWorkOfARunningJobShowsItsProgress(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "a", `{"steps":10}`)
	_, err := s.Runs.Claim(t.Context(), j.ID, nil)
	must(t, err)
	must(t, s.Runs.Started(t.Context(), j.ID, 1, s.now()))
	s.Runs.SetProgress(j.ID, &app.Progress{Fraction: 0.5})
	for _, settings := range []string{`{"steps":10}`, `{}`} { // as sent, as meant
		rec, created, err := s.Jobs.Submit(t.Context(), ann, submission(t, "a", settings))
		if err != nil || created || !bytes.Contains(rec, []byte(`"progress":{"fraction":0.5}`)) {
			t.Errorf("settings %s: created %v, %v: %s", settings, created, err, rec)
		}
	}
}

func TestManyEqualSubmissionsMakeOneJob(t *testing.T) {
	s := newSite(t)
	var wg sync.WaitGroup
	created := make([]bool, 200)
	for i := range created {
		wg.Go(func() {
			var err error
			if _, created[i], err = s.Jobs.Submit(t.Context(), ann, submission(t, "same", `{"steps":5}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	winners := 0
	for _, c := range created {
		if c {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%d of 200 equal submissions made a job, want 1", winners)
	}
}

func TestRepeatReturnsTheJobWhateverBecameOfItsParts(t *testing.T) {
	s := newSite(t)
	u := s.upload(ann, "in.txt", "hello")
	first := s.submit(ann, "a", `{"input":"inputs/in.txt"}`)
	if len(first.Inputs) != 1 || first.Inputs[0].FileID != string(u.ID) || first.Inputs[0].SHA256 != u.SHA256 {
		t.Errorf("inputs %+v, want the upload %s", first.Inputs, u.ID)
	}
	if err := s.Files.Delete(t.Context(), ann, string(u.ID)); !errors.Is(err, fault.FileInUse) {
		t.Errorf("delete of a file that a queued job reads: %v, want FILE_IN_USE", err)
	}
	s.run(first.ID, done())
	must(t, s.Files.Delete(t.Context(), ann, string(u.ID)))
	changed := s.with(`
format = 1
type = "other"
version = "1"
title = "Another"
command = ["true"]
`)
	rec, created, err := changed.Jobs.Submit(t.Context(), ann, submission(t, "a", `{"input":"inputs/in.txt"}`))
	if err != nil || created || read(t, rec).ID != first.ID {
		t.Errorf("repeat: created %v, %v; want the job that is there", created, err)
	}
}

func TestAllFaultsOfASubmissionAreTold(t *testing.T) {
	s := newSite(t)
	sub := submission(t, "a/b", `{"steps":0,"inptu":"x","input":"inputs/none.txt"}`)
	sub.Priority, sub.MaxRuntime = 5, -1
	_, _, err := s.Jobs.Submit(t.Context(), ann, sub)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Invalid {
		t.Fatalf("got %v, want INVALID", err)
	}
	var at []string
	for _, f := range e.Fields {
		at = append(at, fmt.Sprint(f.Loc))
	}
	for _, want := range []string{
		"[body jobName]", "[body priority]", "[body maxRuntimeSeconds]",
		"[body settings steps]", "[body settings inptu]", "[body settings input]",
	} {
		if !slices.Contains(at, want) {
			t.Errorf("no fault at %s in %v", want, at)
		}
	}
}

func TestUnknownAlgorithmSuggestsTheNearest(t *testing.T) {
	s := newSite(t)
	sub := submission(t, "a", `{}`)
	sub.Type = "ehco"
	_, _, err := s.Jobs.Submit(t.Context(), ann, sub)
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte(`did you mean "echo"?`)) {
		t.Errorf("got %v", err)
	}
}

func TestLostAttemptsAreRepeatedAndFailuresAreNot(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "lost", `{}`)
	s.run(j.ID, app.Ending{Lost: "the machine was restarted"})
	if got := s.job(ann, "lost"); got.Status != app.Queued || got.Attempts != 1 || got.StatusReason == "" {
		t.Errorf("after a lost attempt: %s, attempts %d, reason %q", got.Status, got.Attempts, got.StatusReason)
	}
	s.run(j.ID, app.Ending{Lost: "the machine was restarted"})
	if got := s.job(ann, "lost"); got.Status != app.Failed || got.Failure.Code != app.FailedLost || got.Attempts != 2 {
		t.Errorf("after two lost attempts of 1 + 1 retries: %s %+v", got.Status, got.Failure)
	}
	j = s.submit(ann, "broken", `{}`)
	s.run(j.ID, broken())
	if got := s.job(ann, "broken"); got.Status != app.Failed || got.Attempts != 1 {
		t.Errorf("after a failure: %s, attempts %d", got.Status, got.Attempts)
	}
}

func TestOnlyFailedJobsAreRetried(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "a", `{}`)
	if _, err := s.Jobs.Retry(t.Context(), ann, "a"); !errors.Is(err, fault.JobNotFailed) {
		t.Errorf("retry of a queued job: %v", err)
	}
	s.run(j.ID, broken())
	rec, err := s.Jobs.Retry(t.Context(), ann, "a")
	must(t, err)
	if got := read(t, rec); got.Status != app.Queued || got.Failure != nil || !got.CompletedAt.IsZero() {
		t.Errorf("after retry: %s", rec)
	}
	s.run(j.ID, done())
	got := s.job(ann, "a")
	if got.Status != app.Completed || got.Attempts != 2 || *got.ResultBytes != 7 {
		t.Errorf("after the second attempt: %+v", got)
	}
	if _, err := s.Jobs.Retry(t.Context(), ann, "a"); !errors.Is(err, fault.JobNotFailed) {
		t.Errorf("retry of a completed job: %v", err)
	}
}

func TestCancelEndsWhatWaitsAndMarksWhatRuns(t *testing.T) {
	s := newSite(t)
	s.submit(ann, "waits", `{}`)
	running := s.submit(ann, "runs", `{}`)
	j, err := s.Runs.Claim(t.Context(), running.ID, nil)
	must(t, err)
	must(t, s.Runs.Started(t.Context(), j.ID, 1, s.now()))
	for _, name := range []string{"waits", "runs", "runs"} {
		_, err := s.Jobs.Cancel(t.Context(), ann, name)
		must(t, err)
	}
	if got := s.job(ann, "waits"); got.Status != app.Failed || got.Failure.Code != app.FailedStopped {
		t.Errorf("a queued job after cancel: %+v", got)
	}
	if got := s.job(ann, "runs"); got.Status != app.Running {
		t.Errorf("a running job after cancel: %s; it is FAILED only when it is gone", got.Status)
	}
	must(t, s.Runs.Finish(t.Context(), j.ID, 1, app.Ending{Outcome: &app.Outcome{Cause: app.CauseStopped, StartedAt: s.now(), EndedAt: s.now()}}))
	if got := s.job(ann, "runs"); got.Status != app.Failed || got.Failure.Code != app.FailedStopped {
		t.Errorf("a stopped job: %+v", got)
	}
}

func TestWhoMayChangeAJob(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "a", `{}`)
	if _, err := s.Jobs.Cancel(t.Context(), bob, "a"); !errors.Is(err, fault.Forbidden) {
		t.Errorf("cancel by another member: %v, want FORBIDDEN", err)
	}
	if _, err := s.Jobs.Cancel(t.Context(), eve, "a"); !errors.Is(err, fault.NotFound) {
		t.Errorf("cancel from another organization: %v, want NOT_FOUND", err)
	}
	s.run(j.ID, broken())
	_, err := s.Jobs.Retry(t.Context(), chief, "a")
	must(t, err)
}

func TestBatchIsAllOrNothing(t *testing.T) {
	s := newSite(t)
	rows := slices.Repeat([]string{`{"steps":1}`}, 1000)
	rows[17] = `{"steps":0}`
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", rows...))
	var e *fault.Error
	if !errors.As(err, &e) || fmt.Sprint(e.Fields[0].Loc) != "[body settings 17 steps]" || len(e.Fields) != 1 {
		t.Fatalf("a bad row: %v", err)
	}
	page, err := s.Jobs.List(t.Context(), ann, app.JobQuery{Limit: 10, WholeOrganization: true})
	must(t, err)
	if len(page.Records) != 0 {
		t.Errorf("%d jobs after a refused batch", len(page.Records))
	}
	s.submit(ann, "b-7", `{}`)
	rows[17] = `{"steps":1}`
	if _, _, err = s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", rows...)); !errors.Is(err, fault.JobAlreadyExists) {
		t.Errorf("a taken row name: %v", err)
	}
	if _, err := s.Jobs.Get(t.Context(), ann, "b-1", 0); !errors.Is(err, fault.NotFound) {
		t.Errorf("row of a refused batch: %v", err)
	}
}

func TestBatchCountsFollowItsRows(t *testing.T) {
	s := newSite(t)
	sub := batchSubmission(t, "b", `{"steps":1}`, `{"steps":2}`, `{"steps":3}`)
	rec, created, err := s.Jobs.SubmitBatch(t.Context(), ann, sub)
	must(t, err)
	if got := read(t, rec); !created || got.Status != app.Queued || *got.Counts != (app.Counts{Queued: 3}) || got.Settings != nil {
		t.Fatalf("new batch: %s", rec)
	}
	if _, created, err = s.Jobs.SubmitBatch(t.Context(), ann, sub); err != nil || created {
		t.Errorf("repeat: created %v, %v", created, err)
	}
	row := func(i int) app.JobID { return s.job(ann, fmt.Sprintf("b-%d", i)).ID }
	expect := func(status app.Status, counts app.Counts) {
		t.Helper()
		if got := s.job(ann, "b"); got.Status != status || *got.Counts != counts {
			t.Errorf("batch is %s %+v, want %s %+v", got.Status, *got.Counts, status, counts)
		}
	}
	j, err := s.Runs.Claim(t.Context(), row(2), nil)
	must(t, err)
	expect(app.Queued, app.Counts{Queued: 3})
	must(t, s.Runs.Started(t.Context(), j.ID, 1, s.now()))
	expect(app.Running, app.Counts{Queued: 2, Running: 1})
	must(t, s.Runs.Finish(t.Context(), j.ID, 1, broken()))
	s.run(row(1), done())
	expect(app.Running, app.Counts{Queued: 1, Completed: 1, Failed: 1})
	s.run(row(3), done())
	expect(app.Failed, app.Counts{Completed: 2, Failed: 1})
	_, err = s.Jobs.Retry(t.Context(), ann, "b")
	must(t, err)
	expect(app.Queued, app.Counts{Queued: 1, Completed: 2})
	s.run(row(2), done())
	expect(app.Completed, app.Counts{Completed: 3})
	if got := s.job(ann, "b"); *got.ResultBytes != 21 {
		t.Errorf("resultBytes %d, want 21", *got.ResultBytes)
	}
}

func TestCancelAndDeleteOfABatchActOnAllRows(t *testing.T) {
	s := newSite(t)
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", `{}`, `{"steps":2}`))
	must(t, err)
	if err := s.Jobs.Delete(t.Context(), ann, "b"); !errors.Is(err, fault.JobNotFinished) {
		t.Errorf("delete of a queued batch: %v", err)
	}
	rec, err := s.Jobs.Cancel(t.Context(), ann, "b")
	must(t, err)
	if got := read(t, rec); got.Status != app.Failed || *got.Counts != (app.Counts{Failed: 2}) {
		t.Errorf("after cancel: %s", rec)
	}
	must(t, s.Jobs.Delete(t.Context(), ann, "b"))
	for _, name := range []string{"b", "b-1", "b-2"} {
		if _, err := s.Jobs.Get(t.Context(), ann, name, 0); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s after delete: %v", name, err)
		}
	}
}

func TestListingPagesThroughWithFilters(t *testing.T) {
	s := newSite(t)
	for i := range 25 {
		by := ann
		if i%2 == 1 {
			by = bob
		}
		s.submit(by, fmt.Sprintf("j%02d", i), `{}`)
	}
	names := func(by app.Caller, q app.JobQuery) (all []string) {
		q.Limit = 4
		for {
			page, err := s.Jobs.List(t.Context(), by, q)
			must(t, err)
			for _, rec := range page.Records {
				all = append(all, read(t, rec).Name)
			}
			if q.StartKey = page.StartKey; q.StartKey == "" {
				return all
			}
		}
	}
	if got := names(ann, app.JobQuery{}); len(got) != 13 || got[0] != "j24" || got[12] != "j00" {
		t.Errorf("own jobs: %v", got)
	}
	if got := names(ann, app.JobQuery{WholeOrganization: true}); len(got) != 25 {
		t.Errorf("all jobs: %v", got)
	}
	if got := names(ann, app.JobQuery{Email: "Bob@lab.example"}); len(got) != 12 {
		t.Errorf("bob's jobs: %v", got)
	}
	if got := names(eve, app.JobQuery{WholeOrganization: true}); len(got) != 0 {
		t.Errorf("another organization's view: %v", got)
	}
	page, err := s.Jobs.List(t.Context(), ann, app.JobQuery{Limit: 4})
	must(t, err)
	other := app.JobQuery{Limit: 4, Status: app.Queued, StartKey: page.StartKey}
	if _, err := s.Jobs.List(t.Context(), ann, other); !errors.Is(err, fault.Invalid) {
		t.Errorf("cursor used with another filter: %v", err)
	}
}

func TestWaitAnswersWhenTheStateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		j := s.submit(ann, "a", `{}`)
		answer := make(chan view)
		go func() {
			rec, err := s.Jobs.Get(context.Background(), ann, "a", time.Minute)
			var v view
			if err = errors.Join(err, json.Unmarshal(rec, &v)); err != nil {
				t.Error(err)
			}
			answer <- v
		}()
		synctest.Wait() // until it waits
		_, err := s.Runs.Claim(t.Context(), j.ID, nil)
		must(t, err)
		synctest.Wait()
		select {
		case got := <-answer:
			t.Errorf("answer %s though the state is the same", got.Status)
		default:
		}
		must(t, s.Runs.Started(t.Context(), j.ID, 1, s.now()))
		if got := <-answer; got.Status != app.Running {
			t.Errorf("answer %s, want RUNNING", got.Status)
		}
	})
}

func TestUploadsAreReplacedUntilTheyAreComplete(t *testing.T) {
	s := newSite(t)
	ctx := t.Context()
	grant, err := s.Files.Create(ctx, ann, app.UploadRequest{Filename: "a.txt", Folder: "x/y"})
	must(t, err)
	id := grant.Upload.ID
	if _, err := s.Files.Complete(ctx, ann, string(id), nil); !errors.Is(err, fault.UploadNotReceived) {
		t.Errorf("complete before anything arrived: %v", err)
	}
	first, _, err := s.Files.BeginUpload(ctx, id, -1)
	must(t, err)
	second, _, err := s.Files.BeginUpload(ctx, id, -1)
	must(t, err)
	if first == second {
		t.Fatalf("two PUTs share generation %d", first)
	}
	stale, err := s.Files.FinishUpload(ctx, id, app.StoredFile{Generation: second, Size: 3})
	if err != nil || stale != 0 {
		t.Errorf("first bytes: stale %d, %v", stale, err)
	}
	stale, err = s.Files.FinishUpload(ctx, id, app.StoredFile{Generation: first, Size: 5})
	if err != nil || stale != second {
		t.Errorf("other bytes: stale %d, %v; want %d", stale, err, second)
	}
	wrong, right := int64(3), int64(5)
	if _, err := s.Files.Complete(ctx, ann, string(id), &wrong); !errors.Is(err, fault.Invalid) {
		t.Errorf("complete with another size: %v", err)
	}
	if _, err := s.Files.Complete(ctx, bob, string(id), &right); !errors.Is(err, fault.Forbidden) {
		t.Errorf("complete by another member: %v", err)
	}
	one, err := s.Files.Complete(ctx, ann, string(id), &right)
	must(t, err)
	two, err := s.Files.Complete(ctx, ann, string(id), nil)
	if err != nil || *one != *two {
		t.Errorf("repeat of complete: %+v, %v; want %+v", two, err, one)
	}
	if _, _, err := s.Files.BeginUpload(ctx, id, -1); !errors.Is(err, fault.UploadCompleted) {
		t.Errorf("PUT after complete: %v", err)
	}
	if _, err := s.Files.FinishUpload(ctx, id, app.StoredFile{Generation: second + 1}); !errors.Is(err, fault.UploadCompleted) {
		t.Errorf("PUT that ends after complete: %v", err)
	}
}

func TestKeysOpenUntilDisabledExpiredOrDeleted(t *testing.T) {
	s := newSite(t)
	ctx := t.Context()
	key, rec, err := s.Accounts.CreateKey(ctx, app.KeyRequest{Organization: "lab", Email: "Ann@Lab.example", Role: apikey.Member, Expires: time.Hour})
	must(t, err)
	if by, err := s.Accounts.Authenticate(ctx, key); err != nil || by.Email != "ann@lab.example" || by.Organization != "lab" {
		t.Fatalf("a new key: %+v, %v", by, err)
	}
	refused := func(why, key string) {
		t.Helper()
		if _, err := s.Accounts.Authenticate(ctx, key); !errors.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v, want UNAUTHORIZED", why, err)
		}
	}
	refused("mistyped", key[:len(key)-1]+"!")
	refused("empty", "")
	other, _, err := s.Accounts.CreateKey(ctx, app.KeyRequest{Organization: "lab", Email: "x@y", Role: apikey.Admin})
	must(t, err)
	refused("secret of another key", key[:20]+other[20:])
	_, err = s.Accounts.DisableKey(ctx, rec.ID, true)
	must(t, err)
	refused("disabled", key)
	_, err = s.Accounts.DisableKey(ctx, rec.ID, false)
	must(t, err)
	if _, err := s.Accounts.Authenticate(ctx, key); err != nil {
		t.Errorf("enabled again: %v", err)
	}
	s.mu.Lock()
	s.time = s.time.Add(2 * time.Hour)
	s.mu.Unlock()
	refused("expired", key)
	must(t, s.Accounts.DeleteKey(ctx, rec.ID))
	refused("deleted", key)
	if err := s.Accounts.DeleteKey(ctx, rec.ID); !errors.Is(err, fault.NotFound) {
		t.Errorf("second delete: %v", err)
	}
}

func TestIDsOnlyRiseWhateverTheClockDoes(t *testing.T) {
	s := newSite(t)
	first := s.submit(ann, "a", `{}`)
	s.mu.Lock()
	s.time = s.time.Add(-24 * time.Hour)
	s.mu.Unlock()
	second := s.submit(ann, "b", `{}`)
	s.Service = s.with(echoFile) // as after a restart
	third := s.submit(ann, "c", `{}`)
	if !(first.ID < second.ID && second.ID < third.ID) {
		t.Errorf("IDs %s, %s, %s do not rise", first.ID, second.ID, third.ID)
	}
}

// FuzzCursor: no text but what the service made is taken for a cursor.
func FuzzCursor(f *testing.F) {
	f.Add("AQ")
	f.Add("")
	f.Fuzz(func(t *testing.T, cursor string) {
		site := fuzzSite()
		page, err := site.Jobs.List(t.Context(), ann, app.JobQuery{Limit: 1, StartKey: cursor})
		if cursor != "" && !errors.Is(err, fault.Invalid) {
			t.Fatalf("cursor %q: %v, %v", cursor, page, err)
		}
	})
}

var fuzzSite = sync.OnceValue(func() *app.Service {
	dir, err := os.MkdirTemp("", "molrun-fuzz")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) // the open database stays usable
	store, err := storage.Open(filepath.Join(dir, "jobs.db"), storage.Options{})
	if err != nil {
		panic(err)
	}
	catalogue, _ := algorithm.NewCatalogue(nil)
	service, err := app.NewService(store, nil, catalogue, app.Options{Now: time.Now, CursorKey: make([]byte, 32)})
	if err != nil {
		panic(err)
	}
	return service
})
