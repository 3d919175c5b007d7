package msa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// Clients retry, give up or print a message depending on the API's error.
func TestWhatClientsAreTold(t *testing.T) {
	const name = "msa-0123456789abcdef0123456789abcdef"
	for _, tt := range []struct {
		status     int
		code, said string
		want       string
		broken     bool // the download is cut off, so that the client retries
	}{
		{429, "RATE_LIMITED", "too fast", `{"status":"RATELIMIT","reason":"too fast"}`, true},
		{403, "QUOTA_EXCEEDED", "9 jobs queued", `{"status":"RATELIMIT","reason":"9 jobs queued"}`, false},
		{403, "QUOTA_EXCEEDED", "stores 9 GiB", "stores 9 GiB", false},
		{503, "UNAVAILABLE", "busy", `{"status":"UNKNOWN","reason":"busy"}`, true},
		{507, "STORAGE_FULL", "full", `{"status":"MAINTENANCE","reason":"full"}`, false},
		{500, "INTERNAL", "failed", "failed", false},
		{404, "NOT_FOUND", "unknown", "There is no such ticket", false},
	} {
		api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/session" && tt.status != 503 {
				fmt.Fprint(w, "{}")
				return
			}
			w.WriteHeader(tt.status)
			fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`, tt.code, tt.said)
		})
		h := Handler(api, Options{Log: zerolog.Nop(), Stall: time.Minute})
		ask := func(path string) (w *httptest.ResponseRecorder, broken bool) {
			defer func() {
				err, _ := recover().(error)
				broken = errors.Is(err, http.ErrAbortHandler)
			}()
			w = httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path+path, nil))
			return w, false
		}
		if w, _ := ask("ticket/" + name + "-t"); w.Code != tt.status || !strings.HasPrefix(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, want %s", tt.code, w.Code, w.Body, tt.want)
		}
		if w, broken := ask("result/download/" + name + "-t"); broken != tt.broken {
			t.Errorf("%s: the download breaks off: %v, want %v: %s", tt.code, broken, tt.broken, w.Body)
		}
	}
}

// A client that disconnects while its job is being submitted finds the job when it
// retries.
func TestASubmissionIsFinishedForAClientThatIsGone(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	submitted := ""
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/session" || strings.HasPrefix(r.URL.Path, "/blobs/"):
		case r.Context().Err() != nil:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case strings.HasPrefix(r.URL.Path, "/jobs/"):
			hangUp()
			w.WriteHeader(http.StatusNotFound)
			return
		case r.URL.Path == "/submit-job":
			body, _ := io.ReadAll(r.Body) // reads from memory
			submitted = string(body)
		}
		fmt.Fprint(w, `{"fileId":"1","uploadUrl":"http://molrun.invalid/blobs/1","type":"msa","status":"QUEUED"}`)
	})
	h := Handler(api, Options{Log: zerolog.Nop(), MaxBody: 1 << 10, Arrive: time.Minute, Stall: time.Minute, Databases: func() string { return "" }})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, Path+"ticket/msa", strings.NewReader("q=%3E101%0AMKT%0A&mode=env"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if !strings.Contains(submitted, `"pair":"none","env":true,"filter":true`) {
		t.Errorf("submitted: %q", submitted)
	}
}

// A predictor can submit the same search between a client's lookup and its submission.
func TestAnEqualSearchOfAPredictorIsTaken(t *testing.T) {
	looked := false
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/jobs/") && !looked:
			looked = true
			w.WriteHeader(http.StatusNotFound)
			return
		case r.URL.Path == "/submit-job":
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"error":{"code":"JOB_ALREADY_EXISTS","message":"differs in settings"}}`)
			return
		}
		fmt.Fprint(w, `{"fileId":"1","uploadUrl":"http://molrun.invalid/blobs/1","type":"msa","status":"RUNNING"}`)
	})
	h := Handler(api, Options{Log: zerolog.Nop(), MaxBody: 1 << 10, Arrive: time.Minute, Stall: time.Minute, Databases: func() string { return "" }})
	r := httptest.NewRequest(http.MethodPost, Path+"ticket/msa", strings.NewReader("q=%3E101%0AMKT%0A&mode=env"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `"status":"RUNNING"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
