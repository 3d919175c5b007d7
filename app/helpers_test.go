package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/listing"
	"molrun/app/job/quota"
	"molrun/app/job/upload"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// greedyFile is an algorithm whose settings are its resource requirements.
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

const (
	echoFile = fixture.Echo
	day      = fixture.Day
)

var (
	ann, bob, eve = fixture.Ann, fixture.Bob, fixture.Eve
	chief         = app.Caller{Organization: "lab", Email: "chief@lab.example", Rights: apikey.Admin.Rights()}
)

// site is a service with a real store, real files and its own clock.
type site struct {
	*fixture.Site
	Accounts *access.Accounts
	Lists    *listing.Lists
	t        *testing.T
}

// newSite returns a site that offers echo and the given algorithms.
func newSite(t *testing.T, definitions ...string) *site {
	t.Helper()
	s := &site{Site: fixture.New(t, app.Options{}, definitions...), t: t}
	s.Accounts = access.New(s.Store, s.Blobs, s.Now)
	s.Lists = lists(t, s.Store, s.Service)
	return s
}

func lists(t *testing.T, store app.Store, service *app.Service) *listing.Lists {
	t.Helper()
	l, err := listing.New(store, service.Jobs, make([]byte, 32))
	must.OK(t, err)
	return l
}

func (s *site) newFiles(store app.Store, quota func(string, string) quota.Quota) *upload.Files {
	return upload.New(store, s.Blobs, upload.Options{Now: s.Now, LinkTTL: time.Hour, Quota: quota})
}

// routed returns a service with the executors local and slurm.
func (s *site) routed(table routing.Table, definitions ...string) *app.Service {
	s.t.Helper()
	table.Executor = "local"
	table.Machines = map[string]placement.Machine{"local": fixture.Machine, "slurm": {}}
	return s.WithOptions(s.Store, app.Options{Routing: table}, definitions...)
}

func (s *site) retry(by app.Caller, name string) {
	s.t.Helper()
	must.OK(s.t, must.Error2(s.Jobs.Retry(s.t.Context(), by, name)))
}

func (s *site) cancel(by app.Caller, name string) {
	s.t.Helper()
	must.OK(s.t, must.Error2(s.Jobs.Cancel(s.t.Context(), by, name)))
}

func (s *site) cancelAlone(by app.Caller, name string) {
	s.t.Helper()
	must.OK(s.t, must.Error2(s.Jobs.CancelAlone(s.t.Context(), by, name)))
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %s", what, err, string(want))
	}
}

// faultLocations returns the locations of the validation errors in err.
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

// submission returns an echo job as package web decodes it from a request body.
func submission(t *testing.T, name, settings string) app.Submission {
	t.Helper()
	return submissionOf(t, "echo", name, settings)
}

func submissionOf(t *testing.T, typ, name, settings string) app.Submission {
	t.Helper()
	body := parseJSON(t, fmt.Sprintf(`{"jobName":%q,"type":%q,"settings":%s}`, name, typ, settings))
	return app.Submission{Name: name, Type: typ, Settings: body.Member("settings"), Body: body}
}

func batchSubmission(t *testing.T, name string, rows ...string) app.BatchSubmission {
	t.Helper()
	return batchSubmissionOf(t, "echo", name, rows...)
}

func batchSubmissionOf(t *testing.T, typ, name string, rows ...string) app.BatchSubmission {
	t.Helper()
	body := parseJSON(t, fmt.Sprintf(`{"batchName":%q,"type":%q,"settings":[%s]}`, name, typ, strings.Join(rows, ",")))
	return app.BatchSubmission{Name: name, Type: typ, Rows: body.Member("settings").Items, Body: body}
}

func (s *site) submit(by app.Caller, name, settings string) shownJob {
	s.t.Helper()
	rec, created, err := s.Jobs.Submit(s.t.Context(), by, submission(s.t, name, settings))
	must.OK(s.t, err)
	if !created {
		s.t.Fatalf("job %q existed already", name)
	}
	return decode(s.t, rec)
}

func (s *site) submitBatch(by app.Caller, name string, rows ...string) shownJob {
	s.t.Helper()
	rec, created, err := s.Jobs.SubmitBatch(s.t.Context(), by, batchSubmission(s.t, name, rows...))
	must.OK(s.t, err)
	if !created {
		s.t.Fatalf("batch %q existed already", name)
	}
	return decode(s.t, rec)
}

// shownJob is a job as shown to callers.
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

// job returns a job as shown to by.
func (s *site) job(by app.Caller, name string) shownJob {
	s.t.Helper()
	rec, err := s.Jobs.Get(s.t.Context(), by, name, 0)
	must.OK(s.t, err)
	return decode(s.t, rec)
}

// storedJob returns a job as stored, with its private part.
func (s *site) storedJob(id app.JobID) (j *app.Job) {
	s.t.Helper()
	must.OK(s.t, s.Store.View(s.t.Context(), func(tx app.Tx) (err error) {
		j, err = tx.Job(id)
		return err
	}))
	return j
}

// success returns the ending of an attempt that completes its job.
func success() app.Ending {
	return app.Ending{Outcome: &app.Outcome{Cause: app.CauseDone}, ResultBytes: 7}
}

// failure returns the ending of an attempt that fails its job.
func failure() app.Ending {
	return app.Ending{
		Outcome: &app.Outcome{Cause: app.CauseExit, ExitCode: 1},
		Failure: &app.Failure{Code: app.FailedExit, Message: "The program ended with exit status 1."},
	}
}

// complete runs a job to success with a result of the given size.
func (s *site) complete(id app.JobID, bytes int) {
	s.t.Helper()
	s.Complete(id, map[string]string{"out": strings.Repeat("x", bytes)})
}
