package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"molrun/app"
)

// TestPrivatePartKeepsNormalSettingsInLittleRoom stores settings as sent with
// those in normal form, and reads the latter again byte for byte.
func TestPrivatePartKeepsNormalSettingsInLittleRoom(t *testing.T) {
	long := strings.Repeat("ACDEFGHIKL", 60)
	for _, tt := range []struct {
		name, sent, normal string
		most               int // bytes of the private part
	}{
		{"equal", `{"a":1,"sequence":"` + long + `"}`, `{"a":1,"sequence":"` + long + `"}`, 200},
		{"another order", `{"sequence":"` + long + `","a":1}`, `{"a":1,"sequence":"` + long + `"}`, 200},
		{"defaults", `{"sequence":"` + long + `"}`, `{"a":7,"sequence":"` + long + `","z":[1,2]}`, 230},
		{"other numbers", `{"sequence":"` + long + `","a":1.50e1}`, `{"a":15,"sequence":"` + long + `"}`, 200},
		{"a changed member", `{"sequence":"` + long + `","a":"X"}`, `{"a":"x","sequence":"` + long + `"}`, 200},
		{"a member that is left out", `{"sequence":"` + long + `","a":null}`, `{"sequence":"` + long + `"}`, 1000},
		{"not in normal form", `{"sequence":"` + long + `"}`, `{"sequence":"` + long + `","a":1}`, 1000},
		{"short", `{"a":1}`, `{"a":1,"b":2}`, 200},
		{"none", `{"a":1}`, ``, 200},
		{"of a batch", ``, `{"sequence":"` + long + `"}`, 1000},
	} {
		j := &app.Job{Settings: json.RawMessage(tt.sent)}
		if tt.sent == "" {
			j.Settings = nil
		}
		if tt.normal != "" {
			j.Private.Normalized = json.RawMessage(tt.normal)
		}
		e, err := j.Encoded()
		must(t, err)
		if len(e.Private) > tt.most {
			t.Errorf("%s: the private part has %d bytes, want at most %d: %s", tt.name, len(e.Private), tt.most, e.Private)
		}
		read := &app.Job{Settings: j.Settings}
		must(t, read.DecodePrivate(e.Private))
		if got := string(read.Private.Normalized); got != tt.normal {
			t.Errorf("%s: read %s, want %s", tt.name, got, tt.normal)
		}
	}
	if err := new(app.Job).DecodePrivate([]byte(`{"added":{"a":1}}`)); err == nil {
		t.Error("settings are put together with none as sent")
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

// TestSettingsNeverHideLiveState submits settings that contain the name of every
// member that is added to a record when it is shown.
func TestSettingsNeverHideLiveState(t *testing.T) {
	const reason = "waiting for a slot"
	tests := []struct{ name, settings string }{
		{"top level", `{"statusReason":"mine"}`},
		{"nested", `{"extra":{"statusReason":"mine","progress":{"fraction":1},"subjobs":[],"subjobsTruncated":true,"status":"RUNNING","executor":"gone","jobEmail":"x"}}`},
		{"deeply nested", `{"extra":{"a":[{"statusReason":":","status":"COMPLETED"}]}}`},
		{"escaped in a string", `{"extra":{"a":"\",\"statusReason\":\"mine\",\"status\":\"RUNNING\",\"jobEmail\":\"x\",\"executor\":\"gone\""}}`},
		{"escaped name", `{"extra":{"status\u0052eason":"mine","\u0070rogress":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, objectFile)
			body := value(t, `{"jobName":"a","type":"object","settings":`+tt.settings+`}`)
			rec, _, err := s.Jobs.Submit(t.Context(), ann, app.Submission{Name: "a", Type: "object", Settings: body.Member("settings"), Body: body})
			must(t, err)
			id := read(t, rec).ID
			if got := s.job(ann, "a"); got.StatusReason != "" {
				t.Errorf("without a reason to wait, the record says %q", got.StatusReason)
			}
			s.Runs.SetWaitReasons(map[app.JobID]string{id: reason})
			if got := s.job(ann, "a"); got.StatusReason != reason || got.Status != app.Queued {
				t.Errorf("queued, the record says %s %q, want QUEUED %q", got.Status, got.StatusReason, reason)
			}
			j, err := s.Runs.Claim(t.Context(), id, nil)
			must(t, err)
			must(t, s.Runs.Started(t.Context(), id, j.Attempts, s.now()))
			s.Runs.SetProgress(id, &app.Progress{Fraction: 0.5})
			rec, err = s.Jobs.Get(t.Context(), ann, "a", 0)
			must(t, err)
			var shown struct {
				Status   app.Status
				Progress *app.Progress
				Settings json.RawMessage
			}
			must(t, json.Unmarshal(rec, &shown))
			if shown.Status != app.Running || shown.Progress == nil || shown.Progress.Fraction != 0.5 {
				t.Errorf("running, the record is %s", rec)
			}
			if string(shown.Settings) != tt.settings {
				t.Errorf("settings %s, want %s", shown.Settings, tt.settings)
			}
		})
	}
}

// TestRowsAreShownWhateverTheirSettings is the same for the rows of a batch.
func TestRowsAreShownWhateverTheirSettings(t *testing.T) {
	s := newSite(t, objectFile)
	body := value(t, `{"batchName":"b","type":"object","settings":[{"extra":{"subjobs":[],"subjobsTruncated":true,"subjobCounts":null}},{"statusReason":"mine"}]}`)
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, app.BatchSubmission{Name: "b", Type: "object", Rows: body.Member("settings").Items, Body: body})
	must(t, err)
	page, err := s.Jobs.List(t.Context(), ann, app.JobQuery{Name: "b", Subjobs: true, Limit: 10})
	must(t, err)
	rows := read(t, page.Records[0]).Subjobs
	if len(rows) != 2 {
		t.Fatalf("%d rows, want 2: %s", len(rows), page.Records[0])
	}
	reasons := map[app.JobID]string{}
	for _, row := range rows {
		reasons[read(t, row).ID] = "waiting"
	}
	s.Runs.SetWaitReasons(reasons)
	page, err = s.Jobs.List(t.Context(), ann, app.JobQuery{Name: "b", Subjobs: true, Limit: 10})
	must(t, err)
	for i, row := range read(t, page.Records[0]).Subjobs {
		if got := read(t, row).StatusReason; got != "waiting" {
			t.Errorf("row %d waits because of %q", i, got)
		}
	}
}
