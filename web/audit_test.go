package web_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/client"
	"molrun/app/job/audit"
	"molrun/app/test/must"
	"molrun/web"
)

// entries is an in-memory audit log.
type entries struct {
	mu  sync.Mutex
	all []audit.Entry
}

func (l *entries) add(e audit.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

// take returns the entries since the last call.
func (l *entries) take() []audit.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

func TestChangesAreAudited(t *testing.T) {
	var log entries
	s := start(t, func(with *setup) { with.options.Audit, with.from = log.add, "192.0.2.1:4711" })
	id := strings.Split(s.ann, "_")[1]
	var fileID string
	for _, step := range []struct {
		method, path, body string
		status             int
		want               string // action, object, result
	}{
		{"POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{}}`, 200, "job.submit a ok"},
		{"POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{"steps":5}}`, 409, "job.submit a JOB_ALREADY_EXISTS"},
		{"POST", "/submit-job", `{"jobName":"a/b","type":"echo","settings":{}}`, 422, "job.submit  INVALID"},
		{"POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}]}`, 200, "batch.submit b ok"},
		{"POST", "/validate-job", `{"jobName":"v","type":"echo","settings":{}}`, 200, ""},
		{"POST", "/jobs/a/cancel", "", 200, "job.cancel a ok"},
		{"POST", "/jobs/a/retry", "", 200, "job.retry a ok"},
		{"POST", "/jobs/a%20b/retry", "", 404, "job.retry a b NOT_FOUND"},
		{"DELETE", "/jobs/a", "", 409, "job.delete a JOB_NOT_FINISHED"},
		{"POST", "/result", `{"jobName":"a"}`, 409, "result.link a JOB_NOT_COMPLETED"},
		{"PUT", "/upload/f.txt", "", 200, "upload.create f.txt ok"},
		{"POST", "/upload/FILE/complete", "", 409, "upload.complete FILE UPLOAD_NOT_RECEIVED"},
		{"DELETE", "/files/FILE", "", 204, "file.delete FILE ok"},
		{"GET", "/jobs", "", 200, ""},
		{"GET", "/jobs/a", "", 200, ""},
		{"POST", "/nowhere", "", 404, ""},
	} {
		path, want := strings.Replace(step.path, "FILE", fileID, 1), strings.Replace(step.want, "FILE", fileID, 1)
		before := time.Now().Add(-time.Second)
		a := s.want(step.status, step.method, path, step.body)
		if strings.HasPrefix(path, "/upload/f") {
			fileID = a.fields(t)["fileId"].(string)
		}
		got := log.take()
		if want == "" {
			if len(got) > 0 {
				t.Errorf("%s %s: %+v, want nothing", step.method, path, got)
			}
			continue
		}
		if len(got) != 1 {
			t.Errorf("%s %s: %d entries", step.method, path, len(got))
			continue
		}
		e := got[0]
		same(t, fmt.Sprintf("%s %s", step.method, path), e.Action+" "+e.Object+" "+e.Result, want)
		if e.Key != id || e.Organization != "lab" || e.Remote != "192.0.2.1" || e.Request != a.header.Get("X-Request-Id") || e.Time.Before(before) {
			t.Errorf("%s %s: %+v", step.method, path, e)
		}
	}
}

func TestAuditOfFailedAuthenticationsIsBounded(t *testing.T) {
	var log entries
	now := &clock{now: time.Unix(1e9, 0)}
	s := start(t, func(with *setup) {
		with.options.Audit, with.options.Now, with.from = log.add, now.read, "192.0.2.1:4711"
	})
	for range 20 {
		s.as(s.ann[:len(s.ann)-1]+"!", "POST", "/submit-job", `{"jobName":"a"}`)
	}
	got := log.take()
	same(t, "entries", len(got), 5)
	for _, e := range got {
		if e.Action != "authenticate" || e.Result != "UNAUTHORIZED" || e.Key != "" || e.Object != "" || e.Remote != "192.0.2.1" {
			t.Errorf("%+v", e)
		}
	}
	now.advance(time.Second)
	id := strings.Split(s.ann, "_")[1]
	must.OK(t, must.Error2(s.app.Accounts.DisableKey(t.Context(), app.Operator(), id, true)))
	s.as(s.ann, "GET", "/jobs", "")
	if got := log.take(); len(got) != 1 || got[0].Key != id {
		t.Errorf("a disabled key: %+v, want its id %s", got, id)
	}
}

func TestRateLimitedRequestsAreNotAudited(t *testing.T) {
	var log entries
	s := start(t, func(with *setup) { with.options.Audit, with.options.Rates.Submit = log.add, 1 })
	s.want(422, "POST", "/submit-job", "{}")
	s.want(429, "POST", "/submit-job", "{}")
	same(t, "entries, of the request that was handled", len(log.take()), 1)
}

func TestKeyAdministrationIsAudited(t *testing.T) {
	var log entries
	s := start(t)
	operator := client.NewControl(s.controlWith(web.ControlOptions{Audit: log.add, RotateSecret: s.blobs.RotateSecret, RotateNow: func(context.Context) (string, error) { return s.blobs.RotateSecretNow() }}))
	ctx := t.Context()
	made, err := operator.CreateKey(ctx, client.KeyRequest{Organization: "lab", Email: "Fay@lab.example"})
	must.OK(t, err)
	same(t, "made", []any{made.Email, made.Role, made.ExpiresAt.IsZero()}, []any{"fay@lab.example", "member", true})
	brief, err := operator.CreateKey(ctx, client.KeyRequest{Organization: "lab", Email: "gus@lab.example", Role: "admin", Expires: 48 * time.Hour})
	must.OK(t, err)
	same(t, "of 48 hours", []any{brief.Role, brief.ExpiresAt.Sub(brief.CreatedAt).Round(time.Minute)}, []any{"admin", 48 * time.Hour})
	next, err := operator.RotateKey(ctx, made.ID, time.Hour)
	if err != nil || next.Email != made.Email {
		t.Fatalf("%+v, %v", next, err)
	}
	off, err := operator.DisableKey(ctx, next.ID)
	must.OK(t, err)
	on, err := operator.EnableKey(ctx, next.ID)
	must.OK(t, err)
	same(t, "disabled", []bool{off.Disabled, on.Disabled}, []bool{true, false})
	must.OK(t, operator.DeleteKey(ctx, next.ID))
	all, err := operator.Keys(ctx)
	must.OK(t, err)
	same(t, "number of keys", len(all), 6)
	if err := operator.RevokeLinks(ctx, "absent"); err == nil {
		t.Error("revoking the links of an absent key succeeds")
	}
	must.OK(t, operator.RevokeLinks(ctx, made.ID))
	for _, dry := range []bool{true, false} { // a dry run changes nothing
		for _, err := range operator.Prune(ctx, client.PruneRequest{EndedBefore: time.Now(), DryRun: dry}) {
			must.OK(t, err)
		}
	}
	kid, err := operator.RotateSecret(ctx)
	if err != nil || kid == "" {
		t.Errorf("kid %q, %v", kid, err)
	}
	last, err := operator.RotateSecretNow(ctx)
	if err != nil || last == kid {
		t.Errorf("kid %q, %v", last, err)
	}
	if err := operator.DeleteKey(ctx, "absent"); err == nil {
		t.Error("deleting an absent key succeeds")
	}
	var got []string
	for _, e := range log.take() {
		if e.Remote != "control socket" || e.Request == "" || e.Key != "" {
			t.Errorf("%+v", e)
		}
		got = append(got, e.Action+" "+e.Object+" "+e.Result)
	}
	same(t, "entries", got, []string{
		"key.create " + made.ID + " ok", "key.create " + brief.ID + " ok", "key.rotate " + made.ID + " ok", "key.disable " + next.ID + " ok", "key.enable " + next.ID + " ok",
		"key.delete " + next.ID + " ok", "key.revoke-links absent NOT_FOUND", "key.revoke-links " + made.ID + " ok", "prune  ok", "secret.rotate " + kid + " ok", "secret.rotate-now " + last + " ok", "key.delete absent NOT_FOUND",
	})
}

func TestEveryChangingRouteIsAudited(t *testing.T) {
	reads := map[string]bool{"POST /validate-job": true, "POST /estimate": true}
	for _, r := range append(web.Routes(), web.ControlRoutes()...) {
		route := r.Method + " " + r.Path
		if r.Method == "GET" || reads[route] {
			continue
		}
		if !web.Audited(route) {
			t.Errorf("%s changes something but is not audited", route)
		}
	}
}
