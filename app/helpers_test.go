package app_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/listing"
	"molrun/app/job/quota"
	"molrun/app/job/upload"
	"molrun/app/test/must"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
)

// echoFile is an algorithm with a default, a file and one retry.
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

// greedyFile is an algorithm whose settings are its resources.
const greedyFile = `
format = 1
type = "greedy"
version = "1"
title = "Reserve what the settings say"
command = ["true"]

[[parameters]]
name = "cores"
type = "integer"
default = 1

[[parameters]]
name = "memory_gb"
type = "integer"
default = 1

[[parameters]]
name = "cards"
type = "integer"
default = 0

[resources]
cpus = "{settings.cores}"
memory = "{settings.memory_gb}GiB"
gpus = "{settings.cards}"
`

var (
	ann   = app.Caller{Organization: "lab", Email: "ann@lab.example", Rights: apikey.Member.Rights()}
	bob   = app.Caller{Organization: "lab", Email: "bob@lab.example", Rights: apikey.Member.Rights()}
	chief = app.Caller{Organization: "lab", Email: "chief@lab.example", Rights: apikey.Admin.Rights()}
	eve   = app.Caller{Organization: "other", Email: "ann@lab.example", Rights: apikey.Admin.Rights()}
)

const day = 24 * time.Hour

// site is a service on a real store and real files, with a clock of its own.
type site struct {
	*app.Service
	Files    *upload.Files
	Accounts *access.Accounts
	Lists    *listing.Lists
	t        *testing.T
	store    *storage.Store
	files    *blobs.Dir
	mu       sync.Mutex
	time     time.Time
}

// newSite returns a site that offers echo and the given algorithms. The store is
// checked when the test ends.
func newSite(t *testing.T, definitions ...string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, time: time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)}
	secret, err := link.LoadSecret(dir)
	must.OK(t, err)
	s.files, err = blobs.Open(dir, blobs.Options{Now: s.now, Secret: secret, Log: zerolog.Nop()})
	must.OK(t, err)
	s.store, err = storage.Open(filepath.Join(dir, "jobs.db"), storage.Options{Fatal: func(err error) { t.Error(err) }})
	must.OK(t, err)
	t.Cleanup(func() {
		if err := s.store.Check(context.Background()); err != nil {
			t.Errorf("check of the store: %v", err)
		}
		must.OK(t, s.store.Close())
		must.OK(t, s.files.Close())
	})
	s.Service = s.newService(s.store, app.Options{}, append([]string{echoFile}, definitions...)...)
	s.Files = s.newFiles(s.store, nil)
	s.Accounts = access.New(s.store, s.files, s.now)
	s.Lists = lists(t, s.store, s.Service)
	return s
}

func lists(t *testing.T, store app.Store, service *app.Service) *listing.Lists {
	t.Helper()
	l, err := listing.New(store, service.Jobs, make([]byte, 32))
	must.OK(t, err)
	return l
}

func (s *site) newFiles(store app.Store, quota func(string, string) quota.Quota) *upload.Files {
	return upload.New(store, s.files, upload.Options{Now: s.now, LinkTTL: time.Hour, Quota: quota})
}

// newService returns another service on the site's files. Without routing in
// the options, all jobs run on a local machine of 4 CPUs and 8 GiB.
func (s *site) newService(store app.Store, o app.Options, definitions ...string) *app.Service {
	s.t.Helper()
	o.Now = s.now
	if o.Routing.Machines == nil {
		o.Routing.Executor = "local"
		o.Routing.Machines = map[string]placement.Machine{"local": localMachine}
	}
	service, err := app.NewService(store, s.files, catalogue(s.t, definitions), o)
	must.OK(s.t, err)
	return service
}

var localMachine = placement.Machine{CPUs: 4, MemoryBytes: 8 << 30, Local: true}

// routed returns a service with the executors local and slurm.
func (s *site) routed(table routing.Table, definitions ...string) *app.Service {
	s.t.Helper()
	table.Executor = "local"
	table.Machines = map[string]placement.Machine{"local": localMachine, "slurm": {}}
	return s.newService(s.store, app.Options{Routing: table}, definitions...)
}

func catalogue(t *testing.T, definitions []string) *algorithm.Catalogue {
	t.Helper()
	var all []*algorithm.File
	for i, text := range definitions {
		a, mistakes := algorithm.Parse(fmt.Sprintf("%d.toml", i), []byte(text))
		for _, m := range mistakes {
			t.Fatal(m)
		}
		all = append(all, a)
	}
	c, err := algorithm.NewCatalogue(all)
	must.OK(t, err)
	return c
}

// now advances the clock by a millisecond, so that no two events coincide.
func (s *site) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(time.Millisecond)
	return s.time
}

func (s *site) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(d)
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %s", what, err, string(want))
	}
}

// faultLocations returns the locations of the faults that a refusal lists.
func faultLocations(t *testing.T, err error) (locations []string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Invalid {
		t.Fatalf("got error %v, want %s", err, string(fault.Invalid))
	}
	for _, f := range e.Fields {
		locations = append(locations, fmt.Sprint(f.Loc))
	}
	return locations
}

func parseJSON(t *testing.T, text string) *strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text))
	must.OK(t, err)
	return v
}

// submission returns an echo job as package web makes it from a body.
func submission(t *testing.T, name, settings string) app.Submission {
	t.Helper()
	return submissionOf(t, "echo", name, settings)
}

func submissionOf(t *testing.T, typ, name, settings string) app.Submission {
	t.Helper()
	body := parseJSON(t, fmt.Sprintf(`{"jobName":%q,"type":%q,"settings":%s}`, name, typ, settings))
	return app.Submission{Name: name, Type: typ, Settings: body.Member("settings"), Body: body}
}

// batchSubmission returns a batch of echo jobs.
func batchSubmission(t *testing.T, name string, rows ...string) app.BatchSubmission {
	t.Helper()
	return batchSubmissionOf(t, "echo", name, rows...)
}

func batchSubmissionOf(t *testing.T, typ, name string, rows ...string) app.BatchSubmission {
	t.Helper()
	body := parseJSON(t, fmt.Sprintf(`{"batchName":%q,"type":%q,"settings":[%s]}`, name, typ, strings.Join(rows, ",")))
	return app.BatchSubmission{Name: name, Type: typ, Rows: body.Member("settings").Items, Body: body}
}

// submit creates an echo job.
func (s *site) submit(by app.Caller, name, settings string) shownJob {
	s.t.Helper()
	rec, created, err := s.Jobs.Submit(s.t.Context(), by, submission(s.t, name, settings))
	must.OK(s.t, err)
	if !created {
		s.t.Fatalf("job %q existed already", name)
	}
	return decode(s.t, rec)
}

// submitBatch creates a batch of echo jobs.
func (s *site) submitBatch(by app.Caller, name string, rows ...string) shownJob {
	s.t.Helper()
	rec, created, err := s.Jobs.SubmitBatch(s.t.Context(), by, batchSubmission(s.t, name, rows...))
	must.OK(s.t, err)
	if !created {
		s.t.Fatalf("batch %q existed already", name)
	}
	return decode(s.t, rec)
}

// shownJob is a job as callers see it.
type shownJob struct {
	app.Job
	Progress *app.Progress     `json:"progress"`
	Subjobs  []json.RawMessage `json:"subjobs"`
}

func decode(t *testing.T, rec app.Record) shownJob {
	t.Helper()
	var j shownJob
	must.OK(t, json.Unmarshal(rec, &j))
	return j
}

// job returns a job as its organization sees it.
func (s *site) job(by app.Caller, name string) shownJob {
	s.t.Helper()
	rec, err := s.Jobs.Get(s.t.Context(), by, name, 0)
	must.OK(s.t, err)
	return decode(s.t, rec)
}

// storedJob returns a job as it is stored, with its private part.
func (s *site) storedJob(id app.JobID) (j *app.Job) {
	s.t.Helper()
	must.OK(s.t, s.store.View(s.t.Context(), func(tx app.Tx) (err error) {
		j, err = tx.Job(id)
		return err
	}))
	return j
}

// start claims a job and reports that its process runs.
func (s *site) start(id app.JobID) *app.Job {
	s.t.Helper()
	j, _, err := s.Runs.Claim(s.t.Context(), id, placement.Devices{}, app.Portion{})
	must.OK(s.t, err)
	must.OK(s.t, s.Runs.Started(s.t.Context(), id, j.Attempts, s.now()))
	return j
}

// run takes a job through an attempt that ends with e.
func (s *site) run(id app.JobID, e app.Ending) {
	s.t.Helper()
	j := s.start(id)
	if e.Outcome != nil {
		e.Outcome.StartedAt = s.now()
		e.Outcome.EndedAt = e.Outcome.StartedAt.Add(time.Minute)
	}
	must.OK(s.t, s.Runs.Finish(s.t.Context(), id, j.Attempts, e))
}

// success is the end of an attempt that completes its job.
func success() app.Ending {
	return app.Ending{Outcome: &app.Outcome{Cause: app.CauseDone}, ResultBytes: 7}
}

// failure is the end of an attempt that fails its job.
func failure() app.Ending {
	return app.Ending{
		Outcome: &app.Outcome{Cause: app.CauseExit, ExitCode: 1},
		Failure: &app.Failure{Code: app.FailedExit, Message: "The program ended with exit status 1."},
	}
}

// complete runs a job to success with a result of that many bytes on disk.
func (s *site) complete(id app.JobID, bytes int) {
	s.t.Helper()
	e := success()
	e.ResultBytes = int64(bytes)
	s.writeResult(id, "out", bytes)
	s.run(id, e)
}

// writeResult writes a file into the result directory of a job.
func (s *site) writeResult(id app.JobID, name string, bytes int) {
	s.t.Helper()
	path := filepath.Join(s.files.JobDir(id), "result", name)
	must.OK(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.OK(s.t, os.WriteFile(path, make([]byte, bytes), 0o600))
}

// upload stores a completed upload with its bytes on disk.
func (s *site) upload(by app.Caller, filename, text string) *app.Upload {
	s.t.Helper()
	ctx := s.t.Context()
	grant, err := s.Files.Create(ctx, by, upload.Request{Filename: filename})
	must.OK(s.t, err)
	generation, _, err := s.Files.BeginUpload(ctx, grant.Upload.ID, -1)
	must.OK(s.t, err)
	path := s.files.UploadPath(grant.Upload.ID, generation)
	must.OK(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.OK(s.t, os.WriteFile(path, []byte(text), 0o600))
	sum := sha256.Sum256([]byte(text))
	_, err = s.Files.FinishUpload(ctx, grant.Upload.ID, app.StoredFile{Generation: generation, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
	must.OK(s.t, err)
	u, err := s.Files.Complete(ctx, by, string(grant.Upload.ID), nil)
	must.OK(s.t, err)
	return u
}
