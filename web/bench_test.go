package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/job/apikey"
	"molrun/app/test/fixture"
	"molrun/blobs"
	"molrun/web"
	"molrun/web/edge"
	"molrun/web/respond"
)

// noteAlgorithm takes settings of typical length.
const noteAlgorithm = `
format = 1
type = "note"
version = "1"
title = "Note"
max_runtime = "1h"
command = ["true"]

[[parameters]]
name = "note"
type = "string"
`

// benchHandler returns the whole service as a handler, and a key for it.
func benchHandler(b *testing.B) (h http.Handler, key string) {
	b.Helper()
	store, files, closed := fixture.Open(b, b.TempDir(), blobs.Options{Now: time.Now, Log: zerolog.Nop(), Reserve: 1})
	b.Cleanup(closed)
	s := newApp(b, store, files, noteAlgorithm)
	api := web.New(s, web.Options{})
	h = edge.Policy{}.Wrap(web.Outer(api, blobs.Handler(files, linked(s), respond.Error), zerolog.New(io.Discard)))
	return h, newKey(b, s.Accounts, "lab", "ann@lab.example", apikey.Member)
}

// serveOne serves one request and requires status 200.
func serveOne(b *testing.B, h http.Handler, key, method, path, body string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("X-Api-Key", key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := sink{header: http.Header{}}
	h.ServeHTTP(&w, r)
	if w.status != http.StatusOK {
		b.Fatalf("%s %s: status %d", method, path, w.status)
	}
}

type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

func noteBody(n int64) string {
	return fmt.Sprintf(`{"jobName":"job-%d","type":"note","settings":{"note":%q}}`, n, strings.Repeat("molecule ", 55))
}

// BenchmarkSubmitJob measures a submission from request to response, with 64
// concurrent clients. About 2 kB and 20 allocations are the benchmark's own.
func BenchmarkSubmitJob(b *testing.B) {
	h, key := benchHandler(b)
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			serveOne(b, h, key, "POST", "/submit-job", noteBody(n.Add(1)))
		}
	})
}

// BenchmarkListJobs measures a page of 50 jobs, from request to response.
func BenchmarkListJobs(b *testing.B) {
	h, key := benchHandler(b)
	for n := range int64(200) {
		serveOne(b, h, key, "POST", "/submit-job", noteBody(n))
	}
	b.ReportAllocs()
	for b.Loop() {
		serveOne(b, h, key, "GET", "/jobs?limit=50", "")
	}
}
