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

	"molrun/app/test/must"
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

// TestRefusedKeysAreCountedByNetwork tries wrong keys from many addresses: those of one
// IPv6 customer, a /64 network, are counted together, and IPv4 addresses separately.
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
		"2001:db8:0:7:ffff::1": 429, // in the network of the earlier attempts
		"2001:db8:0:6::1":      401, // in the adjacent network
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

// TestRequestsThatWaitLeaveSlotsForOthers has Ann wait for changes of a job until further
// requests of hers are rejected.
func TestRequestsThatWaitLeaveSlotsForOthers(t *testing.T) {
	const brief = "/jobs/a?wait=1ms"
	for name, tt := range map[string]struct {
		inFlight, perKey int
		waiting          int    // waiting requests of Ann
		refused          string // path rejected for everyone, or only for Ann if byKey
		byKey            bool
		status           int
		served           string // path allowed for Bob
	}{
		"all slots":                {inFlight: 1, waiting: 1, refused: "/algorithms", status: 503, served: "/healthz"},
		"all waits":                {inFlight: 3, waiting: 1, refused: brief, status: 503, served: "/jobs/a"}, // one of three requests can wait
		"all slots of a key":       {inFlight: 20, perKey: 2, waiting: 2, refused: "/algorithms", byKey: true, status: 429, served: "/algorithms"},
		"all waits that a key may": {inFlight: 8, waiting: 3, refused: brief, byKey: true, status: 429, served: brief}, // three of four requests of a key
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(with *setup) { with.options.MaxInFlight, with.options.MaxInFlightPerKey = tt.inFlight, tt.perKey })
			s.submit("a")
			j := s.claim("a")
			answers := s.waitForA(tt.waiting, tt.status)
			by := s.bob
			if tt.byKey {
				by = s.ann
			}
			must.Become(t, "all wait", func() bool { return s.as(by, "GET", tt.refused, "").status == tt.status })
			code := map[int]string{429: "RATE_LIMITED", 503: "UNAVAILABLE"}[tt.status]
			if a := s.as(by, "GET", tt.refused, ""); a.code() != code || a.header.Get("Retry-After") == "" {
				t.Errorf("%d %v %s", a.status, a.header, a.body)
			}
			s.wantAs(s.bob, 200, "GET", tt.served, "")
			s.finish(j)
			for range tt.waiting {
				if a := <-answers; a.status != 200 || !strings.Contains(a.body, `"FAILED"`) {
					t.Errorf("a request that waited: %d %s", a.status, a.body)
				}
			}
			// The previous request may still hold a slot after its response has arrived.
			must.Become(t, "the slots are free", func() bool { return s.as(by, "GET", tt.refused, "").status == 200 })
		})
	}
}

// waitForA sends requests of Ann that wait for a change of job a. It resends a request
// that is rejected with the given status because another came first.
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

// begin sends a submission whose body begins with text, and returns the status of the
// response. It does not use the client of s, which would read the whole body first.
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

// stall begins a submission, and retries if it is rejected because another request came
// first. end sends the rest and waits for the response.
func (s *service) stall(key, begin string) (end func()) {
	rest, ended := make(untilClosed), make(chan struct{})
	go func() {
		defer close(ended)
		for status := 429; status == 429 || status == 503; {
			status, _ = s.begin(s.t.Context(), key, begin, rest) // 0 if there is no response
		}
	}()
	return func() {
		close(rest)
		<-ended
	}
}

// untilClosed is a reader that blocks until it is closed, and then ends.
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
	must.Become(s.t, "both have arrived", func() bool { return s.as(s.ann, "GET", "/algorithms", "").status == 429 })
	for _, c := range []call{{"GET", "/algorithms"}, {"PUT", "/upload/a"}} {
		// The previous request may still hold a slot after its response has arrived.
		must.Become(s.t, fmt.Sprint(c, " is served"), func() bool { return s.as(s.bob, c.method, c.path, "").status == 200 })
	}
}

// TestOneKeyLeavesMemoryForOthers has Ann send most of a body and stall.
func TestOneKeyLeavesMemoryForOthers(t *testing.T) {
	s := start(t, func(with *setup) {
		with.options.MaxBuffered, with.options.MaxBatchBody, with.options.BodyTime = 1000, 10, time.Hour
	})
	end := s.stall(s.ann, strings.Repeat(" ", 700))
	body := `{"jobName":"` + strings.Repeat("x", 200) + `"}`
	must.Become(s.t, "what Ann has sent has arrived", func() bool { return s.as(s.ann, "POST", "/submit-job", body).status == 503 })
	s.wantAs(s.bob, 422, "POST", "/submit-job", body)
	end()
	s.wantAs(s.ann, 422, "POST", "/submit-job", body)
}

// TestRefusedRequestsAreAnsweredBeforeTheirBody uses clients that wait for a response
// before they send the rest.
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

func TestBodiesShareAMemoryBudget(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxBuffered = 1000 })
	long := `{"jobName":"` + strings.Repeat("x", 1000) + `"}`
	for range 3 { // the budget is released after each request
		s.refused(s.ann, 503, "UNAVAILABLE", "POST", "/submit-job", long)
		s.want(422, "POST", "/submit-job", long[:500]+`"}`)
	}
}
