package compat

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/client"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
)

func TestRevokedLogLinksEnd(t *testing.T) {
	links := newLogLinks(time.Now)
	first, id, _ := apikey.New()
	second, _, _ := apikey.New()
	a, b := links.addLink(first, &client.Job{Name: "j"}), links.addLink(second, &client.Job{Name: "j"})
	for _, step := range []struct {
		revoked string
		a, b    bool
	}{{"absent", true, true}, {id, false, true}, {"", false, false}} {
		links.revoke(step.revoked)
		_, hasA := links.findLink(a)
		_, hasB := links.findLink(b)
		if hasA != step.a || hasB != step.b {
			t.Errorf("after %q was revoked: %v and %v, want %v and %v", step.revoked, hasA, hasB, step.a, step.b)
		}
	}
}

func TestEveryAnswerHasTheHeadersOfTheAPI(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jobs":[]}`))
	})
	handler := Handler(api, Options{Log: zerolog.Nop()})
	for _, path := range []string{"jobs", "log/absent", "nothing"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path+path, nil))
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			must.Equal(t, fmt.Sprintf("%s: %s", path, name), w.Header().Get(name), want)
		}
		if w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: there is no X-Request-Id", path)
		}
	}
}
