package client

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestRequestURLs checks the requests that the methods send.
func TestRequestURLs(t *testing.T) {
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.String()
		w.Header().Set("X-Log-Size", "7")
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	c := New(server.URL+"/", "key")
	files := func(f FileFilter) func() error {
		return func() error {
			for _, err := range c.Files(t.Context(), f) {
				return err
			}
			return nil
		}
	}
	log := func(attempt int, offset, limit int64) func() error {
		return func() error {
			part, _, err := c.Log(t.Context(), "a b", attempt, offset, limit)
			if err == nil {
				part.Close()
			}
			return err
		}
	}
	algorithm := func(version string) func() error {
		return func() error { _, err := c.Algorithm(t.Context(), "echo", version); return err }
	}
	for want, ask := range map[string]func() error{
		"/files":                   files(FileFilter{}),
		"/files?folder=in":         files(FileFilter{Folder: "in"}),
		"/files?organization=true": files(FileFilter{WholeOrganization: true}),
		"/files?limit=1":           files(FileFilter{PageSize: 1}),
		"/jobs/a%20b/logs":         log(0, 0, -1),
		"/jobs/a%20b/logs?limit=0": log(0, 0, 0),
		"/jobs/a%20b/logs?attempt=1&limit=1&offset=1": log(1, 1, 1),
		"/algorithms/echo":           algorithm(""),
		"/algorithms/echo?version=2": algorithm("2"),
	} {
		if err := ask(); err != nil || got != want {
			t.Errorf("sent %s, want %s; %v", got, want, err)
		}
	}
}

// TestBrokenConnectionsAreRetried breaks the connection of the second request.
func TestBrokenConnectionsAreRetried(t *testing.T) {
	for name, post := range map[string]func(*Client) error{
		"submit":   func(c *Client) error { _, err := c.Submit(t.Context(), Submission{}); return err },
		"validate": func(c *Client) error { _, err := c.Validate(t.Context(), Submission{}); return err },
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests == 2 {
				panic(http.ErrAbortHandler)
			}
			w.Write([]byte("{}"))
		}))
		defer server.Close()
		c := New(server.URL, "key")
		c.RetryConnections(time.Minute)
		for range 2 {
			if err := post(c); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if requests != 3 {
			t.Errorf("%s: %d requests, want 3", name, requests)
		}
	}
}
