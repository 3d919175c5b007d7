package app_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/eta"
	"molrun/app/job/listing"
	"molrun/app/test/must"
)

func TestNormalizedSettingsAreStoredAsADifference(t *testing.T) {
	long := strings.Repeat("ACDEFGHIKL", 60)
	for _, tt := range []struct {
		name, sent, normalized string
		maxBytes               int // of the private part
	}{
		{"equal", `{"a":1,"sequence":"` + long + `"}`, `{"a":1,"sequence":"` + long + `"}`, 200},
		{"other order", `{"sequence":"` + long + `","a":1}`, `{"a":1,"sequence":"` + long + `"}`, 200},
		{"defaults", `{"sequence":"` + long + `"}`, `{"a":7,"sequence":"` + long + `","z":[1,2]}`, 230},
		{"other notation of a number", `{"sequence":"` + long + `","a":1.50e1}`, `{"a":15,"sequence":"` + long + `"}`, 200},
		{"changed member", `{"sequence":"` + long + `","a":"X"}`, `{"a":"x","sequence":"` + long + `"}`, 200},
		{"removed member", `{"sequence":"` + long + `","a":null}`, `{"sequence":"` + long + `"}`, 1000},
		{"members not in normal order", `{"sequence":"` + long + `"}`, `{"sequence":"` + long + `","a":1}`, 1000},
		{"short", `{"a":1}`, `{"a":1,"b":2}`, 200},
		{"none normalized", `{"a":1}`, ``, 200},
		{"none sent, as for a batch", ``, `{"sequence":"` + long + `"}`, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := new(app.Job)
			if tt.sent != "" {
				j.Settings = json.RawMessage(tt.sent)
			}
			if tt.normalized != "" {
				j.Private.Normalized = json.RawMessage(tt.normalized)
			}
			e, err := j.Encoded()
			must.OK(t, err)
			if len(e.Private) > tt.maxBytes {
				t.Errorf("the private part has %d bytes, want at most %d: %s", len(e.Private), tt.maxBytes, e.Private)
			}
			decoded, err := app.DecodeJob(e.Shown, e.Private)
			must.OK(t, err)
			must.Equal(t, "normalized settings", string(decoded.Private.Normalized), tt.normalized)
		})
	}
	if _, err := app.DecodeJob([]byte(`{}`), []byte("\x00"+`{"added":{"a":1}}`)); err == nil {
		t.Error("a difference was decoded without the settings as sent")
	}
}

// TestPrivatePartsHaveAHead stores every field that a head can represent, with values
// that it can represent and values that it can't.
func TestPrivatePartsHaveAHead(t *testing.T) {
	created := unit.At(time.Unix(1e9, 5e6))
	whole := app.Private{
		Sent: strings.Repeat("0a", 32), Meaning: strings.Repeat("1b", 32), Definition: strings.Repeat("2c", 32), Folder: strings.Repeat("2c", 32),
		QueuedAt: created, Class: "c",
	}
	decode := func(stored []byte) (app.Private, error) {
		j, err := app.DecodeJob([]byte(`{"createdAt":"2001-09-09T01:46:40.005Z"}`), stored)
		if err != nil {
			return app.Private{}, err
		}
		return j.Private, nil
	}
	var stored []byte
	for i, change := range []func(p *app.Private){
		func(p *app.Private) { p.Sent = "" },
		func(p *app.Private) { p.Sent = "0a" },
		func(p *app.Private) { p.Meaning = strings.Repeat("1B", 32) }, // restored unchanged
		func(p *app.Private) { p.Meaning = "" },
		func(p *app.Private) { p.Definition, p.Folder = "", "" },
		func(p *app.Private) { p.Definition = "" },
		func(p *app.Private) { p.Folder = "" },
		func(p *app.Private) { p.Folder = strings.Repeat("3d", 32) },
		func(p *app.Private) { p.QueuedAt = unit.Time{} },
		func(p *app.Private) { p.QueuedAt = unit.At(created.Add(time.Hour)) },
		func(*app.Private) {},
	} {
		want := whole
		change(&want)
		e, err := (&app.Job{CreatedAt: created, Private: want}).Encoded()
		must.OK(t, err)
		got, err := decode(e.Private)
		if !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("change %d: %+v, %v, want %+v", i, got, err, want)
		}
		stored = e.Private
	}
	if want := 1 + 3*32; len(stored) > want+100 {
		t.Errorf("%d bytes, want little more than %d", len(stored), want)
	}
	for n := range stored {
		if got, err := decode(stored[:n]); err == nil {
			t.Errorf("%d of %d bytes read as %+v", n, len(stored), got)
		}
	}
}

const objectFile = `
format = 1
type = "object"
version = "1"
command = ["true"]

[[parameters]]
name = "extra"
type = "object"

[[parameters]]
name = "statusReason"
type = "string"
`

// TestSettingsNeverHideLiveState submits settings with the name of every member that is
// added to a record when shown.
func TestSettingsNeverHideLiveState(t *testing.T) {
	const reason = "waiting for a slot"
	for _, tt := range []struct{ name, settings string }{
		{"top level", `{"statusReason":"mine"}`},
		{"nested", `{"extra":{"statusReason":"mine","progress":{"fraction":1},"subjobs":[],"subjobsTruncated":true,"status":"RUNNING","executor":"gone","jobEmail":"x"}}`},
		{"deeply nested", `{"extra":{"a":[{"statusReason":":","status":"COMPLETED"}]}}`},
		{"escaped in a string", `{"extra":{"a":"\",\"statusReason\":\"mine\",\"status\":\"RUNNING\",\"jobEmail\":\"x\",\"executor\":\"gone\""}}`},
		{"escaped name", `{"extra":{"status\u0052eason":"mine","\u0070rogress":1}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, objectFile)
			rec, _, err := s.Jobs.Submit(t.Context(), ann, submissionOf(t, "object", "a", tt.settings))
			must.OK(t, err)
			id := decode(t, rec).ID
			must.Equal(t, "the record shows the reason", s.job(ann, "a").StatusReason, "")
			s.Runs.SetWaitReasons(map[app.JobID]eta.Reason{id: {Text: reason, By: eta.CPU}})
			if got := s.job(ann, "a"); got.StatusReason != reason || got.Status != app.Queued {
				t.Errorf("the queued job is %s, %q; want QUEUED, %q", got.Status, got.StatusReason, reason)
			}
			s.Start(id)
			s.Runs.SetProgress(&app.Job{ID: id}, app.Progress{Fraction: 0.5})
			got := s.job(ann, "a")
			if got.Status != app.Running || got.Progress == nil || got.Progress.Fraction != 0.5 {
				t.Errorf("the running job is %s with progress %+v, want RUNNING with 0.5", got.Status, got.Progress)
			}
			must.Equal(t, "settings", string(got.Settings), tt.settings)
		})
	}
}

func TestSettingsOfRowsNeverHideLiveState(t *testing.T) {
	s := newSite(t, objectFile)
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, batchSubmissionOf(t, "object", "b",
		`{"extra":{"subjobs":[],"subjobsTruncated":true,"subjobCounts":null}}`, `{"statusReason":"mine"}`))
	must.OK(t, err)
	rows := func() (rows []shownJob) {
		page, err := s.Lists.Jobs(t.Context(), ann, listing.Query{Selection: listing.Selection{Name: "b"}, Subjobs: true, Limit: 10})
		must.OK(t, err)
		for _, row := range decode(t, page.Records[0]).Subjobs {
			rows = append(rows, decode(t, row))
		}
		if len(rows) != 2 {
			t.Fatalf("%d rows, want 2: %s", len(rows), page.Records[0])
		}
		return rows
	}
	reasons := map[app.JobID]eta.Reason{}
	for _, row := range rows() {
		reasons[row.ID] = eta.Reason{Text: "waiting"}
	}
	s.Runs.SetWaitReasons(reasons)
	for i, row := range rows() {
		must.Equal(t, fmt.Sprintf("row %d shows the reason", i), row.StatusReason, "waiting")
	}
}

func TestRecordShowsTheIsolationOfTheFinishedAttempt(t *testing.T) {
	s := newSite(t)
	id := s.submit(ann, "a", `{}`).ID
	runIsolated := func(isolation string, e app.Ending) func() {
		e.Outcome.Isolation = isolation
		return func() { s.Run(id, e) }
	}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"submitted", func() {}, ""},
		{"interrupted", runIsolated("cgroup", app.Ending{Outcome: &app.Outcome{Cause: app.CauseInterrupted}}), ""},
		{"failed", runIsolated("bubblewrap", failure()), "bubblewrap"},
		{"retried", func() {
			s.retry(ann, "a")
		}, ""},
		{"completed", runIsolated("bubblewrap+cgroup", success()), "bubblewrap+cgroup"},
	} {
		step.do()
		must.Equal(t, fmt.Sprintf("%s: isolation", step.name), s.job(ann, "a").Isolation, step.want)
	}
}
