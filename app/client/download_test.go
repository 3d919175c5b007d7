package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app/test/must"
)

// flaky serves one file and breaks connections after some bytes.
type flaky struct {
	mu     sync.Mutex
	file   []byte
	etag   string
	breaks []int // bytes before each successive break
	ranges []string
	status int // 0 to serve the file
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/result" {
		_ = json.NewEncoder(w).Encode(Result{DownloadURL: "http://" + r.Host + "/blobs/x?token=secret", FileName: "x", Size: int64(len(f.file))})
		return
	}
	f.ranges = append(f.ranges, r.Header.Get("Range"))
	if f.status != 0 {
		http.Error(w, "no", f.status)
		return
	}
	w.Header().Set("ETag", f.etag)
	if len(f.breaks) > 0 {
		w = &cutting{w, f.breaks[0]}
		f.breaks = f.breaks[1:]
	}
	http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(f.file))
}

// cutting breaks the connection after left bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	n, _ := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func serve(t *testing.T, f *flaky) (*Client, string) {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c := New(server.URL, "key")
	c.backoff = time.Millisecond
	t.Cleanup(c.Close)
	return c, filepath.Join(t.TempDir(), "x")
}

func file(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return b
}

func TestBrokenDownloadsAreResumed(t *testing.T) {
	f := &flaky{file: file(200_000), etag: `"v1"`, breaks: []int{100_000, 50_000, 1}}
	c, path := serve(t, f)
	must.OK(t, c.Download(t.Context(), ResultRequest{}, path))
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, f.file) {
		t.Errorf("%d bytes, %v; want the file", len(got), err)
	}
	if len(f.ranges) != 4 || f.ranges[0] != "" || f.ranges[1] != "bytes=100000-" {
		t.Errorf("asked for %q", f.ranges)
	}
}

func TestDownloadsContinueWhereAnEarlierCallStopped(t *testing.T) {
	whole := file(1000)
	tests := []struct {
		name       string
		part, note string
		ranges     string
		file       []byte
	}{
		{"a part", string(whole[:400]), `"v1"`, "bytes=400-", whole},
		{"all of it", string(whole), `"v1"`, "bytes=999-", whole},
		{"more than all", string(whole) + "more", `"v1"`, "bytes=999-", whole},
		{"part of another file", strings.Repeat("x", 400), `"v0"`, "bytes=400-", whole},
		{"without note", strings.Repeat("x", 400), "", "", whole},
		{"nothing of an empty file", "", "", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &flaky{file: tt.file, etag: `"v1"`}
			c, path := serve(t, f)
			for suffix, text := range map[string]string{partSuffix: tt.part, noteSuffix: tt.note} {
				must.OK(t, os.WriteFile(path+suffix, []byte(text), 0o600))
			}
			must.OK(t, c.Download(t.Context(), ResultRequest{}, path))
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, tt.file) {
				t.Errorf("%d bytes, %v; want the file", len(got), err)
			}
			if f.ranges[0] != tt.ranges || len(f.ranges) != 1 {
				t.Errorf("asked for %q, want %q", f.ranges, tt.ranges)
			}
		})
	}
}

func TestDownloadsStopWhenARetryIsUseless(t *testing.T) {
	f := &flaky{file: file(10), status: http.StatusForbidden}
	c, path := serve(t, f)
	err := c.Download(t.Context(), ResultRequest{}, path)
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != 403 || len(f.ranges) != 1 {
		t.Errorf("%v after %d tries", err, len(f.ranges))
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there")
	}
	f.status, f.ranges = http.StatusServiceUnavailable, nil
	if err := c.Download(t.Context(), ResultRequest{}, path); err == nil || len(f.ranges) != maxStuck {
		t.Errorf("%v after %d tries", err, len(f.ranges))
	}
	f.ranges = nil
	if err := c.Download(t.Context(), ResultRequest{}, filepath.Join(path, "no", "folder")); !errors.Is(err, os.ErrNotExist) || len(f.ranges) > 0 {
		t.Errorf("into an absent directory: %v after %d tries", err, len(f.ranges))
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Download(given, ResultRequest{}, path); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestErrorsHideLinks(t *testing.T) {
	c, path := serve(t, &flaky{file: file(10), etag: `"v1"`, breaks: []int{0, 0, 0}})
	if err := c.Download(t.Context(), ResultRequest{}, path); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	u := &Upload{UploadURL: "http://127.0.0.1:1/blobs/x?token=secret"}
	if err := c.SendUpload(t.Context(), u, strings.NewReader("x"), 1); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestAnswersOfOtherServersAreErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jobs/redirect" {
			http.Redirect(w, r, "http://127.0.0.1:1/stolen", http.StatusFound)
			return
		}
		fmt.Fprint(w, "<html>hello")
	}))
	defer server.Close()
	c := New(server.URL, "key")
	defer c.Close()
	for _, name := range []string{"page", "redirect"} {
		if job, err := c.Job(t.Context(), name); err == nil || job != nil {
			t.Errorf("%s: %+v, %v", name, job, err)
		}
	}
}

func TestDetailsHaveLocations(t *testing.T) {
	var e Error
	must.OK(t, json.Unmarshal([]byte(`{"Details":[{"loc":["body","settings",17,"steps"],"msg":"use an integer"},{"loc":["query","limit"],"msg":"no"}]}`), &e))
	if got, want := e.Error(), "body.settings[17].steps: use an integer\nquery.limit: no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The pause before resuming a download grows with each attempt, and ends when the context
// does.
func TestDownloadsPauseBeforeTheyAreResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, start := New("http://localhost", "key"), time.Now()
		if !c.pause(t.Context(), 1) || time.Since(start) != 500*time.Millisecond {
			t.Errorf("the first pause took %s", time.Since(start))
		}
		if !c.pause(t.Context(), 2) || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("after the second pause, %s were over", time.Since(start))
		}
		ended, stop := context.WithCancel(t.Context())
		stop()
		if c.pause(ended, 3) || time.Since(start) != 1500*time.Millisecond {
			t.Error("a pause goes on without its context")
		}
	})
}
