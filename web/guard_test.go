package web_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestRefusedKeysFromOneAddressAreRateLimited(t *testing.T) {
	now := &clock{now: time.Unix(1e9, 0)}
	s := start(t, func(with *setup) { with.options.Now, with.from = now.read, "192.0.2.1:4711" })
	for range 100 {
		s.wantSent(401, "GET", "/jobs", "")
	}
	for _, c := range calls() {
		if a := s.send(c.method, c.path, ""); a.status != 429 || a.code() != "RATE_LIMITED" || a.header.Get("Retry-After") == "" {
			t.Errorf("%v: %d %s", c, a.status, a.body)
		}
	}
	s.want(200, "GET", "/jobs", "") // a valid key still works
	now.advance(time.Second)
	s.wantSent(401, "GET", "/jobs", "")
}

// TestRefusedKeysAreCountedByNetwork tries wrong keys from many addresses: those
// of one IPv6 customer, a /64, count together, and those of IPv4 alone.
func TestRefusedKeysAreCountedByNetwork(t *testing.T) {
	now := &clock{now: time.Unix(1e9, 0)}
	var from *string
	s := start(t, func(with *setup) { with.options.Now, with.from, from = now.read, "192.0.2.1:99", &with.from })
	try := func(address string) int {
		*from = net.JoinHostPort(address, "99")
		return s.send("GET", "/jobs", "").status
	}
	for i := range 100 {
		if status := try(fmt.Sprintf("2001:db8:0:7:%x::%x", i, i)); status != 401 {
			t.Fatalf("attempt %d: %d", i, status)
		}
		if status := try(fmt.Sprintf("192.0.2.%d", i)); status != 401 {
			t.Fatalf("attempt %d: %d", i, status)
		}
	}
	for address, want := range map[string]int{
		"2001:db8:0:7:ffff::1": 429, // in the network of those before
		"2001:db8:0:6::1":      401, // in the one before
		"2001:db8:1:7::1":      401,
		"192.0.2.200":          401,
		"::ffff:192.0.2.201":   401,
	} {
		same(t, fmt.Sprintf("from %s", address), try(address), want)
	}
}

func TestRefusedKeysFromSharedAddressesAreNotRateLimited(t *testing.T) {
	now := &clock{now: time.Unix(1e9, 0)}
	for _, from := range []string{"127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "10.0.0.7:1"} {
		s := start(t, func(with *setup) {
			with.options.Now, with.from = now.read, from
			with.options.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		})
		for range 150 {
			s.wantSent(401, "GET", "/jobs", "")
		}
	}
}

func TestKeysHaveConfiguredRates(t *testing.T) {
	now := &clock{now: time.Unix(1e9, 0)}
	s := start(t, func(with *setup) {
		with.options.Now = now.read
		with.options.Rates.List, with.options.Rates.Submit, with.options.Rates.Upload = 2, 1, 0.5
	})
	s.want(200, "GET", "/jobs", "")
	s.want(200, "GET", "/files", "")
	s.want(429, "GET", "/jobs", "")
	s.want(422, "POST", "/submit-job", "{}")
	s.want(429, "POST", "/submit-batch", "{}")
	s.want(200, "PUT", "/upload/a", "")
	s.want(429, "PUT", "/upload/a", "")
	s.want(200, "GET", "/algorithms", "") // has no rate limit
	s.wantAs(s.bob, 200, "GET", "/jobs", "")
	now.advance(500 * time.Millisecond)
	s.want(200, "GET", "/jobs", "")
	s.want(429, "GET", "/jobs", "")
	now.advance(1500 * time.Millisecond)
	s.want(200, "PUT", "/upload/a", "")
}

func TestRequestsBeyondTheLimitAreRefusedAtOnce(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxInFlight = 1 })
	s.submit("a")
	j := s.claim("a")
	waiting := s.waitForA(1, 503)
	s.until("the waiting request has arrived", func() bool { return s.as(s.bob, "GET", "/algorithms", "").status == 503 })
	s.wantSent(200, "GET", "/healthz", "")
	s.finish(j)
	if a := <-waiting; a.status != 200 || !strings.Contains(a.body, `"FAILED"`) {
		t.Errorf("the waiting request: %d %s", a.status, a.body)
	}
	s.want(200, "GET", "/algorithms", "")
}

func TestWaitingRequestsLeaveSlotsForOthers(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxInFlight = 3 }) // one of them may wait
	s.submit("a")
	j := s.claim("a")
	wait := func(path string) answer {
		for range 10_000 {
			if a := s.as(s.ann, "GET", path, ""); a.status != 503 {
				return a
			}
		}
		return answer{}
	}
	waiting := make(chan answer)
	go func() { waiting <- wait("/jobs/a?wait=60s") }()
	refused := false
	for i := 0; i < 10_000 && !refused; i++ { // until the waiting request has arrived
		refused = s.as(s.bob, "GET", "/jobs/a?wait=1ms", "").status == 503
	}
	if !refused {
		t.Error("more requests wait than allowed")
	}
	s.want(200, "GET", "/jobs/a", "")
	s.finish(j)
	if a := <-waiting; a.status != 200 || !strings.Contains(a.body, `"FAILED"`) {
		t.Errorf("the waiting request: %d %s", a.status, a.body)
	}
	same(t, "after the waiting request", wait("/jobs/a?wait=60s").status, 200)
}

// waitForA makes requests of Ann wait for a change of job a. One that is refused with
// a status, because another came first, is sent again.
func (s *service) waitForA(requests, refused int) (answers <-chan answer) {
	all := make(chan answer, requests)
	for range requests {
		go func() {
			a := s.as(s.ann, "GET", "/jobs/a?wait=60s", "")
			for a.status == refused {
				a = s.as(s.ann, "GET", "/jobs/a?wait=60s", "")
			}
			all <- a
		}()
	}
	return all
}

// until waits until fn is true.
func (s *service) until(what string, fn func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !fn(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("timeout waiting until %s", what)
		}
	}
}

// begin sends a submission that begins with a text, and returns the status of its answer.
// The client of s would read the body itself.
func (s *service) begin(ctx context.Context, key, text string, rest io.Reader) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/submit-job", io.MultiReader(strings.NewReader(text), rest))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", key)
	response, err := new(http.Client).Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// stall begins a submission, again if it is refused because another request came first.
// The rest comes with end, which waits for the answer.
func (s *service) stall(key, begin string) (end func()) {
	rest, ended := make(untilClosed), make(chan struct{})
	go func() {
		defer close(ended)
		for status := 429; status == 429 || status == 503; {
			status, _ = s.begin(s.t.Context(), key, begin, rest) // 0 if there is no answer
		}
	}()
	return func() {
		close(rest)
		<-ended
	}
}

// untilClosed is a reader that has nothing, and ends when it is closed.
type untilClosed chan struct{}

func (u untilClosed) Read([]byte) (int, error) {
	<-u
	return 0, io.EOF
}

func TestSlowBodiesTakeNoSlots(t *testing.T) {
	s := start(t, func(with *setup) {
		with.options.MaxInFlight, with.options.MaxInFlightPerKey, with.options.BodyTime = 2, 2, time.Hour
	})
	defer s.stall(s.ann, "{")()
	defer s.stall(s.ann, "{")()
	s.until("both have arrived", func() bool { return s.as(s.ann, "GET", "/algorithms", "").status == 429 })
	for _, c := range []call{{"GET", "/algorithms"}, {"PUT", "/upload/a"}} {
		// The request before may still have a slot when its answer is there.
		s.until(fmt.Sprint(c, " is served"), func() bool { return s.as(s.bob, c.method, c.path, "").status == 200 })
	}
}

// TestOneKeyLeavesMemoryForOthers has Ann send most of a body and stall.
func TestOneKeyLeavesMemoryForOthers(t *testing.T) {
	s := start(t, func(with *setup) {
		with.options.MaxBuffered, with.options.MaxBatchBody, with.options.BodyTime = 1000, 10, time.Hour
	})
	end := s.stall(s.ann, strings.Repeat(" ", 700))
	body := `{"jobName":"` + strings.Repeat("x", 200) + `"}`
	s.until("what Ann has sent has arrived", func() bool { return s.as(s.ann, "POST", "/submit-job", body).status == 503 })
	s.wantAs(s.bob, 422, "POST", "/submit-job", body)
	end()
	s.wantAs(s.ann, 422, "POST", "/submit-job", body)
}

// TestRefusedRequestsAreAnsweredBeforeTheirBody has clients who await an answer before
// they send the rest.
func TestRefusedRequestsAreAnsweredBeforeTheirBody(t *testing.T) {
	s := start(t, func(with *setup) { with.options.BodyTime, with.options.MaxBuffered = time.Hour, 1000 })
	for _, tt := range []struct {
		name, key, begin string
		status           int
	}{
		{"without a key", "", "{", 401},
		{"of a body too large", s.ann, strings.Repeat(" ", 1001), 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if status, err := s.begin(ctx, tt.key, tt.begin, make(untilClosed)); err != nil || status != tt.status {
				t.Errorf("%d, %v, want %d", status, err, tt.status)
			}
		})
	}
}

func TestRequestsOfOneKeyAreBounded(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxInFlight, with.options.MaxInFlightPerKey = 20, 2 })
	s.submit("a")
	j := s.claim("a")
	waiting := s.waitForA(2, 429)
	s.until("both have arrived", func() bool { return s.as(s.ann, "GET", "/algorithms", "").status == 429 })
	if a := s.as(s.ann, "GET", "/algorithms", ""); a.code() != "RATE_LIMITED" || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.wantAs(s.bob, 200, "GET", "/algorithms", "")
	s.finish(j)
	for range 2 {
		if a := <-waiting; a.status != 200 || !strings.Contains(a.body, `"FAILED"`) {
			t.Errorf("a waiting request: %d %s", a.status, a.body)
		}
	}
	s.want(200, "GET", "/algorithms", "")
}

// TestOneKeyLeavesWaitsForOthers has Ann wait for more changes than one key may.
func TestOneKeyLeavesWaitsForOthers(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxInFlight = 8 }) // four of them may wait, three of one key
	s.submit("a")
	j := s.claim("a")
	waiting := s.waitForA(3, 429)
	s.until("three have arrived", func() bool { return s.as(s.ann, "GET", "/jobs/a?wait=1ms", "").status == 429 })
	s.wantAs(s.bob, 200, "GET", "/jobs/a?wait=1ms", "")
	s.finish(j)
	for range 3 {
		if a := <-waiting; a.status != 200 || !strings.Contains(a.body, `"FAILED"`) {
			t.Errorf("a waiting request: %d %s", a.status, a.body)
		}
	}
}

func TestBodiesShareAMemoryBudget(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxBuffered = 1000 })
	long := `{"jobName":"` + strings.Repeat("x", 1000) + `"}`
	for range 3 { // the budget is released after each request
		s.refused(s.ann, 503, "UNAVAILABLE", "POST", "/submit-job", long)
		s.want(422, "POST", "/submit-job", long[:500]+`"}`)
	}
}
