package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"molrun/app"
)

func TestRecordTellsTheIsolationOfTheAttemptThatEndedIt(t *testing.T) {
	s := newSite(t)
	j := s.submit(ann, "a", `{}`)
	within := func(e app.Ending, isolation string) app.Ending {
		e.Outcome.Isolation = isolation
		return e
	}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"submitted", func() {}, ""},
		{"interrupted", func() {
			s.run(j.ID, within(app.Ending{Outcome: &app.Outcome{Cause: app.CauseInterrupted}}, "cgroup"))
		}, ""},
		{"failed", func() { s.run(j.ID, within(broken(), "bubblewrap")) }, "bubblewrap"},
		{"retried", func() {
			_, err := s.Jobs.Retry(t.Context(), ann, "a")
			must(t, err)
		}, ""},
		{"completed", func() { s.run(j.ID, within(done(), "bubblewrap+cgroup")) }, "bubblewrap+cgroup"},
	} {
		step.do()
		if got := s.job(ann, "a").Isolation; got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

func TestRecordOfAnOlderVersionTellsNoIsolation(t *testing.T) {
	const old = `{"jobId":"01HF7YAT010000000000000001","jobName":"a","type":"echo","version":"1","status":"COMPLETED","organization":"lab","jobEmail":"ann@lab.example","priority":0,"createdAt":"2023-11-14T22:13:20.001Z","attempts":1,"executor":"local","pinned":false}`
	var j app.Job
	must(t, json.Unmarshal([]byte(old), &j))
	if got, err := j.Encode(); err != nil || string(got) != old {
		t.Errorf("%s, %v; want it as it was", got, err)
	}
	s := newSite(t)
	id := s.submit(ann, "a", `{}`).ID
	s.run(id, done()) // of a task that an older version started
	if rec, err := s.Jobs.Get(t.Context(), ann, "a", 0); err != nil || strings.Contains(string(rec), "isolation") {
		t.Errorf("%s, %v", rec, err)
	}
}
