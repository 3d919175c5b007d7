package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// repeat submits a body as package web decodes it, and returns "created", "again" or the
// error.
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

// differs returns the error for a submission that differs from the existing job of the
// same name.
func differs(name, members string) string {
	member := "jobName"
	if name == "screen" {
		member = "batchName"
	}
	return `JOB_ALREADY_EXISTS: job "` + name + `" already exists and differs in ` + members +
		"; choose another " + member + ", or send the original submission again to get that job"
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
		{`{"batchName":"plain",` + row + `}`, `JOB_ALREADY_EXISTS: "plain" already exists as a single job; choose another batchName`},

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
		{`{"jobName":"screen",` + job + `}`, `JOB_ALREADY_EXISTS: "screen" already exists as a batch; choose another jobName`},
		{`{"jobName":"screen-1",` + job + `,"priority":-1}`, `JOB_ALREADY_EXISTS: job "screen-1" already exists in batch "screen"; choose another jobName`},
	} {
		must.Equal(t, step.body, s.repeat(s.Service, step.body), step.want)
	}
}

// TestRepeatIsRecognisedAfterTheLimitOfItsAlgorithmChanged repeats jobs after the
// algorithm's max_runtime has been lowered.
func TestRepeatIsRecognisedAfterTheLimitOfItsAlgorithmChanged(t *testing.T) {
	s := newSite(t)
	changed := s.WithOptions(s.Store, app.Options{}, strings.Replace(echoFile, "retries = 1", "retries = 1\nmax_runtime = \"2h\"", 1))
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
