package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/apikey"
	"molrun/app/placement"
	"molrun/app/routing"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
	"molrun/web"
	"molrun/web/edge"
	"molrun/web/respond"
)

// noteAlgorithm takes settings as long as those of most jobs.
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

// benchHandler gives the whole service as a handler, and a key of it.
func benchHandler(b *testing.B) (h http.Handler, key string) {
	b.Helper()
	store, err := storage.Open(filepath.Join(b.TempDir(), "jobs.db"), storage.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	dir := b.TempDir()
	secret, err := link.LoadSecret(dir)
	if err != nil {
		b.Fatal(err)
	}
	files, err := blobs.Open(dir, blobs.Options{Now: time.Now, Secret: secret})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = files.Close() })
	note, mistakes := algorithm.Parse("note.toml", []byte(noteAlgorithm))
	if len(mistakes) > 0 {
		b.Fatal(mistakes)
	}
	catalogue, err := algorithm.NewCatalogue([]*algorithm.File{note})
	if err != nil {
		b.Fatal(err)
	}
	s, err := app.NewService(store, files, catalogue, app.Options{
		Now: time.Now, CursorKey: secret.Derive("cursors"), UploadTTL: time.Hour,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 64, MemoryBytes: 1 << 40, Local: true}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	key, _, err = s.Accounts.CreateKey(b.Context(), app.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member})
	if err != nil {
		b.Fatal(err)
	}
	api := web.New(s, web.Options{})
	return edge.Policy{}.Wrap(web.Outer(api, blobs.Handler(files, s.Files, respond.Error), zerolog.New(io.Discard))), key
}

// serveOne answers one request and keeps nothing of the answer but its status.
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

// BenchmarkSubmitJob reports what a submission costs from its request to its
// answer, of 64 clients at once. Some 2 kB and 20 allocations are the test's own.
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

// BenchmarkListJobs reports what a page of 50 costs likewise.
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
