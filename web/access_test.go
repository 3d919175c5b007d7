package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"molrun/app/test/must"
	"molrun/web"
)

func TestPanicIsAnErrorObjectAndTheServerContinues(t *testing.T) {
	s := start(t)
	s.store.panics.Store(true)
	a := s.want(500, "GET", "/jobs", "")
	s.store.panics.Store(false)
	if a.code() != "INTERNAL" || !strings.Contains(a.body, a.header.Get("X-Request-Id")) || strings.Contains(a.body, "panics") {
		t.Error(a.body)
	}
	log := s.log.String()
	contains(t, log, `"panic":"the store panics"`, `"stack":`, `"status":500`, a.header.Get("X-Request-Id"))
	s.want(200, "GET", "/jobs", "")
}

// outer serves signed links with the given handler.
func outer(t *testing.T, blobs http.HandlerFunc) *httptest.Server {
	server := httptest.NewUnstartedServer(web.Outer(http.NotFoundHandler(), blobs, zerolog.Nop()))
	server.Config.ErrorLog = nil
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestPanicOfALinkIsAnErrorObjectOrCutsTheConnection(t *testing.T) {
	server := outer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/blobs/begun":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, "half")
		case "/blobs/abort":
			panic(http.ErrAbortHandler)
		}
		panic("a mistake")
	})
	resp, err := http.Get(server.URL + "/blobs/fresh")
	must.OK(t, err)
	body, err := io.ReadAll(resp.Body)
	must.OK(t, errors.Join(err, resp.Body.Close()))
	if resp.StatusCode != 500 || !strings.Contains(string(body), `"INTERNAL"`) || resp.Header.Get("X-Request-Id") == "" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, path := range []string{"/blobs/begun", "/blobs/abort"} {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			continue
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: an incomplete response looked complete", path)
		}
		resp.Body.Close()
	}
}

func TestLinksGetTheServersOwnWriter(t *testing.T) {
	server := outer(t, func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(io.ReaderFrom); !ok {
			t.Errorf("%s got a %T", r.URL.EscapedPath(), w)
		}
	})
	for path, status := range map[string]int{
		"/blobs/x": 200, "/blobs/": 200, "/blobs/a%2Fb": 200, "/blobs/../jobs": 200,
		"/blobs": 404, "/Blobs/x": 404, "/blobs%2Fx": 404, "//blobs/x": 404, "/x/../blobs/x": 404,
	} {
		resp, err := http.Get(server.URL + path)
		must.OK(t, err)
		resp.Body.Close()
		if resp.StatusCode != status || resp.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestRequestIDOfTheClientIsIgnored(t *testing.T) {
	s := start(t)
	seen := map[string]bool{}
	for range 3 {
		a := s.send("GET", "/healthz", "", "X-Request-Id", "chosen\"by the client")
		id := a.header.Get("X-Request-Id")
		if seen[id] || id == "chosen\"by the client" {
			t.Errorf("request id %q", id)
		}
		seen[id] = true
	}
}

func TestAccessLogHoldsNoSecrets(t *testing.T) {
	s := start(t)
	s.want(200, "GET", "/jobs?jobName=hidden-query", "")
	up := s.want(200, "PUT", "/upload/a.txt", "").fields(t)["uploadUrl"].(string)
	s.send("PUT", up, "hidden-body", "Content-Type", "text/plain")
	s.send("GET", "/jobs", "", "x-api-key", "hidden-key", "Cookie", "hidden-cookie")
	log := s.log.String()
	for _, secret := range []string{"hidden", s.ann, strings.Split(s.ann, "_")[2], up[strings.Index(up, "token="):]} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q: %s", secret, log)
		}
	}
	var line struct {
		Message, Method, Path, Organization, Key, Request string
		Status, Bytes                                     int
		Took                                              float64
	}
	first, _, _ := strings.Cut(log, "\n")
	must.OK(t, json.Unmarshal([]byte(first), &line))
	same(t, "line", []any{line.Message, line.Method, line.Path, line.Organization, line.Key, line.Status, line.Bytes > 0, line.Took > 0, line.Request != ""},
		[]any{"request", "GET", "/jobs", "lab", strings.Split(s.ann, "_")[1], 200, true, true, true})
}

func TestReadinessShowsItsChecks(t *testing.T) {
	ready := false
	s := start(t, func(with *setup) {
		with.options.Ready = func(context.Context) (map[string]any, bool) {
			return map[string]any{"disk": "12 MB free"}, ready
		}
	})
	a := s.send("GET", "/readyz", "")
	if a.status != 503 || a.code() != "UNAVAILABLE" || !strings.Contains(a.body, "12 MB free") || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	ready = true
	s.wantSent(200, "GET", "/readyz", "")
}

func TestMetricsCountRequestsByRoute(t *testing.T) {
	s := start(t)
	s.want(404, "GET", "/jobs/made-up-name", "")
	s.send("MADEUP", "/made-up-path", "")
	text := s.send("GET", "/metrics", "").body
	contains(t, text,
		`molrun_http_requests_total{method="GET",route="/jobs/:jobName",status="404"} 1`,
		`molrun_http_requests_total{method="any",route="none",status="404"} 1`,
		`molrun_http_request_seconds_count{route="/jobs/:jobName"} 1`,
		"go_goroutines", "process_open_fds",
	)
	if strings.Contains(strings.ToLower(text), "made-up") || strings.Contains(text, "MADEUP") {
		t.Error("clients can create time series")
	}
}
