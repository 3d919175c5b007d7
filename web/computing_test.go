package web_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"molrun/app/base/limit"
	"molrun/app/test/must"
)

// closed returns a single slot that is already taken.
func closed(t *testing.T) (g *limit.Slots, release func()) {
	t.Helper()
	g = &limit.Slots{All: 1}
	_, release, err := g.Enter(t.Context(), "somebody")
	must.OK(t, err)
	return g, release
}

// submitLater sends submissions that must wait for a slot, each after the previous one
// has queued.
func (s *service) submitLater(g *limit.Slots, key string, names ...string) (answered <-chan string) {
	s.t.Helper()
	done := make(chan string, len(names))
	for _, name := range names {
		before := g.Waiting()
		go func() {
			a := s.as(key, "POST", "/submit-job", fmt.Sprintf(`{"jobName":%q,"type":"echo","settings":{}}`, name))
			done <- fmt.Sprintf("%s %d", name, a.status)
		}()
		must.Become(s.t, "the submission waits", func() bool { return g.Waiting() > before })
	}
	return done
}

func TestOthersAreAnsweredWhileSubmissionsWait(t *testing.T) {
	g, release := closed(t)
	s := start(t, func(with *setup) { with.options.Computing = g })
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("job-%d", i))
	}
	answered := s.submitLater(g, s.ann, names...)
	for _, path := range []string{"/jobs", "/algorithms", "/version"} {
		s.wantAs(s.bob, 200, "GET", path, "")
	}
	same(t, "submissions wait", g.Waiting(), len(names))
	release()
	for range names {
		if got := <-answered; !strings.HasSuffix(got, " 200") {
			t.Error(got)
		}
	}
}

func TestCancelledSubmissionLeavesItsPlace(t *testing.T) {
	g, release := closed(t)
	defer release()
	s := start(t, func(with *setup) { with.options.Computing = g })
	ctx, cancel := context.WithCancel(t.Context())
	r := s.request("POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{}}`).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := s.client.Do(r); err == nil {
			resp.Body.Close()
			t.Errorf("status %d, want none", resp.StatusCode)
		}
	}()
	must.Become(s.t, "the submission waits", func() bool { return g.Waiting() == 1 })
	cancel()
	<-gone
	must.Become(s.t, "its slot is free", func() bool { return g.Waiting() == 0 })
}

// TestSlowClientHoldsNoSlot sends the beginnings of requests and never the rest.
func TestSlowClientHoldsNoSlot(t *testing.T) {
	for name, begin := range map[string]string{
		"head": "POST /submit-job HTTP/1.1\r\nHost: x\r\nX-Api",
		"body": "POST /submit-job HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			g, release := closed(t)
			s := start(t, func(with *setup) { with.arrivals, with.options.BodyTime = g, time.Hour })
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			must.OK(t, err)
			defer c.Close()
			must.OK(t, must.Error2(c.Write([]byte(strings.ReplaceAll(begin, "%s", s.ann)))))
			must.Become(s.t, "the request has arrived", func() bool { return g.Waiting() == 1 })
			release() // the request gets the slot
			enterSoon(t, g)
		})
	}
}

// TestRequestsLeaveTheSlotOfTheirArrival sends requests that are answered early, at
// different stages.
func TestRequestsLeaveTheSlotOfTheirArrival(t *testing.T) {
	g := &limit.Slots{All: 1}
	s := start(t, func(with *setup) { with.arrivals, with.options.Computing = g, g })
	for path, status := range map[string]int{"/submit-job": 422, "/jobs/a/cancel": 404, "/nowhere": 404, "/jobs": 405} {
		s.wantAs(s.ann, status, "POST", path, "{}")
		s.send("POST", path, "{}") // without a key
		enterSoon(t, g)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := s.request("POST", "/submit-job", "x").WithContext(ctx) // not declared as JSON, so nothing is read
	resp, err := s.client.Do(r)
	must.OK(t, err)
	resp.Body.Close()
	same(t, "status", resp.StatusCode, http.StatusUnsupportedMediaType)
	enterSoon(t, g)
}

// enterSoon enters and leaves g.
func enterSoon(t *testing.T, g *limit.Slots) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, leave, err := g.Enter(ctx, "bob")
	must.OK(t, err)
	leave()
}
