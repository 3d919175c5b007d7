package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// repeat submits a body as package web reads it, and returns what came of it:
// "created", "again" or the error.
func (s *site) repeat(service *app.Service, text string) string {
	s.t.Helper()
	body := parseJSON(s.t, text)
	var asked struct {
		JobName, BatchName, Type, Version string
		JobNames                          []string
		Priority                          int
		MaxRuntimeSeconds                 int64
	}
	must.OK(s.t, json.Unmarshal([]byte(text), &asked))
	var created bool
	var err error
	if asked.BatchName == "" {
		_, created, err = service.Jobs.Submit(s.t.Context(), ann, app.Submission{
			Name: asked.JobName, Type: asked.Type, Version: asked.Version, Settings: body.Member("settings"),
			Priority: asked.Priority, MaxRuntime: asked.MaxRuntimeSeconds, Body: body,
		})
	} else {
		_, created, err = service.Jobs.SubmitBatch(s.t.Context(), ann, app.BatchSubmission{
			Name: asked.BatchName, Type: asked.Type, Version: asked.Version, Rows: body.Member("settings").Items, RowNames: asked.JobNames,
			Priority: asked.Priority, MaxRuntime: asked.MaxRuntimeSeconds, Body: body,
		})
	}
	switch {
	case err != nil:
		return err.Error()
	case created:
		return "created"
	}
	return "again"
}

// differs is the error for a repeat that is not one.
func differs(name, members string) string {
	member := "jobName"
	if name == "screen" {
		member = "batchName"
	}
	return `JOB_ALREADY_EXISTS: job "` + name + `" already exists and differs in ` + members +
		"; choose another " + member + ", or send the same again to get that job"
}

func TestRepeatThatAsksForSomethingElseNamesIt(t *testing.T) {
	s := newSite(t, greedyFile, strings.Replace(echoFile, `version = "1"`, "version = \"0\"\ndefault = false", 1))
	const job, row = `"type":"echo","settings":{"steps":5}`, `"type":"echo","settings":[{"steps":5},{}]`
	for _, step := range []struct{ body, want string }{
		{`{"jobName":"plain",` + job + `}`, "created"},
		{`{"jobName":"plain",` + job + `,"priority":0}`, "again"},
		{`{"jobName":"plain",` + job + `,"priority":null,"maxRuntimeSeconds":null}`, "again"},
		{`{"jobName":"plain",` + job + `,"maxRuntimeSeconds":86400}`, "again"}, // the algorithm's limit
		{`{"jobName":"plain",` + job + `,"version":"1"}`, "again"},
		{`{"jobName":"plain",` + job + `,"priority":-1}`, differs("plain", "priority")},
		{`{"jobName":"plain",` + job + `,"maxRuntimeSeconds":60}`, differs("plain", "maxRuntimeSeconds")},
		{`{"jobName":"plain",` + job + `,"priority":-1,"maxRuntimeSeconds":60}`, differs("plain", "priority and maxRuntimeSeconds")},
		{`{"jobName":"plain",` + job + `,"version":"0"}`, differs("plain", "version")},
		{`{"jobName":"plain","type":"greedy","settings":{}}`, differs("plain", "type")},
		{`{"jobName":"plain","type":"echo","settings":{"steps":6},"priority":-1}`, differs("plain", "settings and priority")},
		{`{"batchName":"plain",` + row + `}`, `JOB_ALREADY_EXISTS: job "plain" already exists and is no batch; choose another batchName`},

		{`{"jobName":"timed",` + job + `,"priority":-1,"maxRuntimeSeconds":60}`, "created"},
		{`{"jobName":"timed","maxRuntimeSeconds":60,"priority":-1,` + job + `}`, "again"},
		{`{"jobName":"timed",` + job + `,"maxRuntimeSeconds":60}`, differs("timed", "priority")},
		{`{"jobName":"timed",` + job + `,"priority":-1}`, differs("timed", "maxRuntimeSeconds")},
		{`{"jobName":"timed",` + job + `,"priority":-1,"maxRuntimeSeconds":61}`, differs("timed", "maxRuntimeSeconds")},

		{`{"batchName":"screen",` + row + `,"priority":-1}`, "created"},
		{`{"batchName":"screen","priority":-1,` + row + `,"jobNames":["screen-1","screen-2"]}`, "again"},
		{`{"batchName":"screen",` + row + `}`, differs("screen", "priority")},
		{`{"batchName":"screen",` + row + `,"priority":-1,"maxRuntimeSeconds":60}`, differs("screen", "maxRuntimeSeconds")},
		{`{"batchName":"screen",` + row + `,"priority":-1,"jobNames":["x","y"]}`, differs("screen", "settings or jobNames")},
		{`{"jobName":"screen",` + job + `}`, `JOB_ALREADY_EXISTS: job "screen" already exists and is a batch; choose another jobName`},
		{`{"jobName":"screen-1",` + job + `,"priority":-1}`, `JOB_ALREADY_EXISTS: job "screen-1" already exists and is a row of the batch "screen"; choose another jobName`},
	} {
		must.Equal(t, step.body, s.repeat(s.Service, step.body), step.want)
	}
}

// TestRepeatIsRecognisedAfterTheLimitOfItsAlgorithmChanged repeats jobs under an
// algorithm whose max_runtime has become shorter.
func TestRepeatIsRecognisedAfterTheLimitOfItsAlgorithmChanged(t *testing.T) {
	s := newSite(t)
	changed := s.Offering(s.Store, app.Options{}, strings.Replace(echoFile, "retries = 1", "retries = 1\nmax_runtime = \"2h\"", 1))
	const job = `"type":"echo","settings":{"steps":5}`
	for _, step := range []struct {
		service    *app.Service
		body, want string
	}{
		{s.Service, `{"jobName":"plain",` + job + `}`, "created"},
		{s.Service, `{"jobName":"timed",` + job + `,"maxRuntimeSeconds":86400}`, "created"},
		{changed, `{` + job + `,"jobName":"plain"}`, "again"},
		{changed, `{` + job + `,"jobName":"plain","maxRuntimeSeconds":7200}`, differs("plain", "maxRuntimeSeconds")},
		{changed, `{` + job + `,"jobName":"timed"}`, differs("timed", "maxRuntimeSeconds")},
	} {
		must.Equal(t, step.body, s.repeat(step.service, step.body), step.want)
	}
}

// Records as a version stored them that did not note whether maxRuntimeSeconds
// was given: a job with priority and time, one without, and a batch (without its two rows).
var olderRecords = [][2]string{
	{
		`{"jobId":"01M7W8NB02Q73J6K6JQ4YAHES4","jobName":"timed","type":"echo","version":"1","status":"QUEUED","settings":{"steps":5},"organization":"lab","jobEmail":"ann@lab.example","priority":-1,"maxRuntimeSeconds":60,"createdAt":"2026-11-20T10:40:00.001Z","attempts":0,"executor":"local","pinned":false}`,
		`{"sent":"58636e6576b9bb5e913093c9fd329e208adee336de901656e490f320e434408d","meaning":"caa5ee9606a377f8c195c8542b74635893943e3ce194c5f6ec9067b1b6d3e14a","normalized":{"steps":5},"definition":"a4d85955bf5a63639fe38708638ebb6c632832d5b200b7c058b36595f1b3df7e","needs":{"cpus":1,"memoryBytes":1073741824,"gpus":0},"retries":1,"queuedAt":"2026-11-20T10:40:00.001Z"}`,
	},
	{
		`{"jobId":"01M7W8NB04TDZ5PQ43SJDEQZG8","jobName":"plain","type":"echo","version":"1","status":"QUEUED","settings":{"steps":5},"organization":"lab","jobEmail":"ann@lab.example","priority":0,"maxRuntimeSeconds":86400,"createdAt":"2026-11-20T10:40:00.003Z","attempts":0,"executor":"local","pinned":false}`,
		`{"sent":"85af9a2caf2c00cae0c68f26441442c6f13e59a8a60d5bca6cee9e54a00e6631","meaning":"caa5ee9606a377f8c195c8542b74635893943e3ce194c5f6ec9067b1b6d3e14a","normalized":{"steps":5},"definition":"a4d85955bf5a63639fe38708638ebb6c632832d5b200b7c058b36595f1b3df7e","needs":{"cpus":1,"memoryBytes":1073741824,"gpus":0},"retries":1,"queuedAt":"2026-11-20T10:40:00.003Z"}`,
	},
	{
		`{"jobId":"01M7W8NB06SW6RH6VQN9X3TB9M","jobName":"screen","type":"echo","version":"1","status":"QUEUED","organization":"lab","jobEmail":"ann@lab.example","priority":0,"maxRuntimeSeconds":86400,"createdAt":"2026-11-20T10:40:00.005Z","attempts":0,"executor":"local","pinned":false,"subjobCounts":{"QUEUED":0,"RUNNING":0,"COMPLETED":0,"FAILED":0}}`,
		`{"sent":"0562bb915973978c9b33023a6c9e9ff96eced263d1d5d19e192ce4491836129b","meaning":"748351ae24b8d0c03e4c57520aacf1b27c0c70c1bf0ad9c24d2e701079a1ad0e","definition":"a4d85955bf5a63639fe38708638ebb6c632832d5b200b7c058b36595f1b3df7e","needs":{"cpus":0,"memoryBytes":0,"gpus":0},"queuedAt":"2026-11-20T10:40:00.005Z"}`,
	},
}

func TestRepeatOfAJobOfAnOlderVersionIsRecognised(t *testing.T) {
	s := newSite(t)
	s.submit(ann, "any", `{}`) // stores the definition
	must.OK(t, s.Store.Update(t.Context(), func(tx app.Tx) error {
		for _, r := range olderRecords {
			j := new(app.Job)
			must.OK(t, json.Unmarshal([]byte(r[0]), j))
			must.OK(t, j.DecodePrivate([]byte(r[1])))
			e, err := j.Encoded()
			must.OK(t, err)
			e.Shown, e.Private = []byte(r[0]), []byte(r[1])
			if err := tx.PutEncoded(e); err != nil {
				return err
			}
		}
		return nil
	}))
	const job, row = `"type":"echo","settings":{"steps":5}`, `"type":"echo","settings":[{"steps":5},{}]`
	for _, step := range []struct{ body, want string }{
		{`{"jobName":"timed",` + job + `,"priority":-1,"maxRuntimeSeconds":60}`, "again"}, // as sent then
		{`{"jobName":"timed","version":"1",` + job + `,"priority":-1,"maxRuntimeSeconds":60}`, "again"},
		{`{"jobName":"timed",` + job + `,"priority":0,"maxRuntimeSeconds":60}`, differs("timed", "priority")},
		{`{"jobName":"timed",` + job + `,"priority":-1,"maxRuntimeSeconds":61}`, differs("timed", "maxRuntimeSeconds")},
		{`{"jobName":"plain",` + job + `}`, "again"},
		{`{"jobName":"plain","version":"1",` + job + `}`, "again"},
		{`{"jobName":"plain",` + job + `,"priority":-1}`, differs("plain", "priority")},
		{`{"jobName":"plain",` + job + `,"maxRuntimeSeconds":60}`, differs("plain", "maxRuntimeSeconds")},
		{`{"batchName":"screen",` + row + `}`, "again"},
		{`{"batchName":"screen","version":"1",` + row + `}`, "again"},
		{`{"batchName":"screen",` + row + `,"priority":-1}`, differs("screen", "priority")},
	} {
		must.Equal(t, step.body, s.repeat(s.Service, step.body), step.want)
	}
	wantCode(t, "another setting", s.submitError("plain", `{"steps":6}`), fault.JobAlreadyExists)
}

func (s *site) submitError(name, settings string) error {
	_, _, err := s.Jobs.Submit(s.t.Context(), ann, submission(s.t, name, settings))
	return err
}
