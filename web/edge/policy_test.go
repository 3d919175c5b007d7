package edge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"molrun/app/test/must"
	"molrun/web/edge"
)

// behind returns a handler that applies a policy and responds with the client's address.
func behind(p edge.Policy) http.Handler {
	return edge.Trace(zerolog.Nop(), p.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.RemoteAddr))
	})))
}

func TestOnlyTrustedProxiesForwardTheClientAddress(t *testing.T) {
	handler := behind(edge.Policy{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}})
	for _, tt := range []struct {
		name, from string
		forwarded  []string
		want       string
	}{
		{"no proxy", "192.0.2.7:99", nil, "192.0.2.7:99"},
		{"an untrusted proxy", "192.0.2.7:99", []string{"203.0.113.1"}, "192.0.2.7:99"},
		{"a proxy", "10.1.1.1:99", []string{"203.0.113.1"}, "203.0.113.1:0"},
		{"a proxy in IPv6 form", "[::ffff:10.1.1.1]:99", []string{"203.0.113.1"}, "203.0.113.1:0"},
		{"an IPv6 proxy", "[2001:db8::1]:99", []string{"2001:4860::5"}, "[2001:4860::5]:0"},
		{"a chain of proxies", "10.1.1.1:99", []string{"203.0.113.1, 10.2.2.2"}, "203.0.113.1:0"},
		{"a chain in two headers", "10.1.1.1:99", []string{"203.0.113.1", "10.2.2.2"}, "203.0.113.1:0"},
		{"forged by the client", "10.1.1.1:99", []string{"127.0.0.1, 203.0.113.1"}, "203.0.113.1:0"},
		{"only proxies", "10.1.1.1:99", []string{"10.2.2.2"}, "10.1.1.1:99"},
		{"no header", "10.1.1.1:99", nil, "10.1.1.1:99"},
		{"nonsense", "10.1.1.1:99", []string{"203.0.113.1, nonsense"}, "10.1.1.1:99"},
		{"nonsense before", "10.1.1.1:99", []string{"nonsense, 203.0.113.1"}, "203.0.113.1:0"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tt.from
		r.Header["X-Forwarded-For"] = tt.forwarded
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		must.Equal(t, fmt.Sprintf("%s: the client", tt.name), w.Body.String(), tt.want)
	}
}

// TestOneAddressHasFewRequestsWithoutAKey sends nested requests through a proxy; the
// second one has a known user.
func TestOneAddressHasFewRequestsWithoutAKey(t *testing.T) {
	p := edge.Policy{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, MaxAnonymous: 2}
	var ask func(from string, then ...func()) int
	handler := p.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Known") != "" {
			edge.Admitted(r)
		}
		for _, next := range r.Context().Value(t).([]func()) {
			next()
		}
	}))
	ask = func(from string, then ...func()) int {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), t, then), "GET", "/", nil)
		name, known := strings.CutSuffix(from, " known")
		r.RemoteAddr = "10.1.1.1:99"
		r.Header.Set("X-Forwarded-For", name)
		if known {
			r.Header.Set("X-Known", "yes")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	want := func(from string, status int, then ...func()) {
		t.Helper()
		must.Equal(t, "status of a request from "+from, ask(from, then...), status)
	}
	want("2001:db8:0:1::1", 200, func() {
		want("2001:db8:0:1::2 known", 200, func() {
			want("2001:db8:0:1::3", 200, func() {
				want("2001:db8:0:1::4", 429)
				want("2001:db8:0:2::4", 200)
			})
		})
	})
	want("2001:db8:0:1::4", 200)
}

func TestHeadersAreBounded(t *testing.T) {
	handler := behind(edge.Policy{MaxHeader: 1000})
	ask := func(size int) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Cookie", strings.Repeat("x", size))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	many := httptest.NewRequest("GET", "/", nil)
	many.Header["X"] = slices.Repeat([]string{"y"}, 200) // the size counts each header line as sent
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, many)
	must.Equal(t, "many short headers", w.Code, 422)
	must.Equal(t, "below the bound", ask(900).Code, 200)
	if w := ask(1000); w.Code != 422 || !strings.Contains(w.Body.String(), `"loc":["header"]`) || w.Header().Get("X-Request-Id") == "" {
		t.Errorf("above the bound: %d %s", w.Code, w.Body)
	}
}

func TestOnlyConfiguredOriginsAreAllowed(t *testing.T) {
	const page = "https://portal.lab.example"
	for _, tt := range []struct {
		name, origin, method, preflight string
		origins                         []string
		status                          int
		allowed                         bool
	}{
		{"no origins", page, "GET", "", nil, 200, false},
		{"no origins, preflight", page, "OPTIONS", "POST", nil, 200, false},
		{"listed origin", page, "GET", "", []string{"https://a.example", page}, 200, true},
		{"listed origin, preflight", page, "OPTIONS", "POST", []string{page}, 204, true},
		{"OPTIONS without preflight", page, "OPTIONS", "", []string{page}, 200, true},
		{"unlisted origin", "https://evil.example", "GET", "", []string{page}, 200, false},
		{"unlisted origin, preflight", "https://evil.example", "OPTIONS", "POST", []string{page}, 200, false},
		{"origin with a listed prefix", page + ".evil.example", "GET", "", []string{page}, 200, false},
		{"other scheme", "http://portal.lab.example", "GET", "", []string{page}, 200, false},
		{"null origin", "null", "GET", "", []string{page}, 200, false},
		{"no origin", "", "GET", "", []string{page}, 200, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/", nil)
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.preflight != "" {
				r.Header.Set("Access-Control-Request-Method", tt.preflight)
			}
			w := httptest.NewRecorder()
			behind(edge.Policy{Origins: tt.origins}).ServeHTTP(w, r)
			h := w.Header()
			want := ""
			if tt.allowed {
				want = tt.origin
			}
			if w.Code != tt.status || h.Get("Access-Control-Allow-Origin") != want || h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%d with %v; want %d and origin %q", w.Code, h, tt.status, want)
			}
			must.Equal(t, fmt.Sprintf("Vary: %q", h.Get("Vary")), h.Get("Vary") == "Origin", len(tt.origins) > 0)
			if answered := tt.status == 204; answered != (h.Get("Access-Control-Allow-Headers") != "") || answered != (w.Body.Len() == 0) {
				t.Errorf("answer %s with %v", w.Body, h)
			}
		})
	}
}
