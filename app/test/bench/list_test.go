package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"molrun/app/test/must"
)

// On a busy machine, a crowd completes all its submissions even though the server closes
// connections.
func TestCrowdSubmitsAgain(t *testing.T) {
	var asked atomic.Int32
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			w.Write([]byte(`{"created":true}`))
		}
	}))
	defer answers.Close()
	s := &server{address: answers.Listener.Addr().String()}
	c, err := dial(s.address)
	must.OK(t, err)
	defer func() { c.close() }()
	if err := s.submitWithRetries(&c, "a", "cg-idp", `{}`); err != nil || asked.Load() != 3 {
		t.Errorf("%v after %d requests, want 3", err, asked.Load())
	}
}
