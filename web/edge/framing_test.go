package edge_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/web/edge"
)

const (
	chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	twice   = "POST / HTTP/1.1\r\nHost: a\r\ncontent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	counted = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
	plain   = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	old     = "POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
	oldOnly = "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
)

// exchange sends requests, either in one write or each after the previous response, and
// returns how many were answered before the connection closed.
func (c *caller) exchange(t *testing.T, together bool, requests ...string) (answered int) {
	t.Helper()
	if together {
		requests = []string{strings.Join(requests, "")}
	}
	for _, text := range requests {
		if _, err := io.WriteString(c, text); err != nil {
			return answered
		}
		for range strings.Count(text, " HTTP/1.") {
			response, err := http.ReadResponse(c.from, nil)
			if err != nil {
				return answered
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			answered++
			if response.Close {
				if _, err := c.from.ReadByte(); err != io.EOF {
					t.Errorf("after Connection: close: %v, want the end", err)
				}
				return answered
			}
		}
	}
	return answered
}

func TestAmbiguousLengthClosesConnection(t *testing.T) {
	big := strings.Replace(chunked, "Host: a", "Host: a\r\nX: "+strings.Repeat("x", 3000), 1)
	for name, tt := range map[string]struct {
		requests []string
		answered int // number of requests answered
	}{
		"both":                              {[]string{twice, plain}, 1},
		"both, last":                        {[]string{plain, counted, twice, plain}, 3},
		"both, after a long body":           {[]string{strings.Replace(counted, "Content-Length: 3\r\n\r\nabc", "Content-Length: 50000\r\n\r\n"+strings.Repeat("x", 50000), 1), twice, plain}, 2},
		"an encoding that HTTP/1.0 has not": {[]string{old, plain}, 1},
		"HTTP/1.0 without one":              {[]string{oldOnly, oldOnly, plain}, 3},
		"only chunked":                      {[]string{chunked, big, chunked, plain}, 4},
		"neither":                           {[]string{plain, plain}, 2},
	} {
		for _, together := range []bool{false, true} {
			must.Equal(t, fmt.Sprintf("%s, together %v", name, together), newBounded(t, 4).dial().exchange(t, together, tt.requests...), tt.answered)
		}
	}
	// The first part of the headers arrives together with the previous request.
	b := newBounded(t, 4)
	begin, rest, _ := strings.Cut(twice, "Transfer")
	for _, before := range []string{plain, counted} {
		c := b.dial()
		must.Equal(t, "answers to 2 requests in one write", c.exchange(t, false, before+begin[:len(begin)-2]+"\r\nTransfer"+rest), 2)
		c = b.dial()
		must.OK(t, must.Error2(io.WriteString(c, before+begin)))
		must.OK(t, c.answer())
		must.Equal(t, "after the one that came in two parts", c.exchange(t, false, "Transfer"+strings.Replace(rest, "\r\n", "\r\nX: HTTP/1.1\r\n", 1), plain), 1)
	}
	// Requests on a connection can alternate between the two headers.
	must.Equal(t, "answers to 5 requests with one length each", newBounded(t, 4).dial().exchange(t, false, counted, chunked, counted, big, plain), 5)
}

// TestAmbiguousLengthClosesTLSConnection sends encrypted requests. There, every
// request with a Transfer-Encoding closes the connection.
func TestAmbiguousLengthClosesTLSConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		requests []string
		answered int
	}{
		"both":                              {[]string{counted, twice, plain}, 2},
		"an encoding that HTTP/1.0 has not": {[]string{old, plain}, 1},
		"neither":                           {[]string{plain, counted, plain}, 3},
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		}))
		server.Listener = edge.LimitConnections(server.Config, server.Listener, edge.Bounds{Connections: 4}, nil)
		server.StartTLS()
		inner, err := net.Dial("tcp", server.Listener.Addr().String())
		must.OK(t, err)
		_ = inner.SetDeadline(time.Now().Add(time.Minute))
		c := tls.Client(inner, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the server's certificate is of the test
		must.Equal(t, name, (&caller{c, bufio.NewReader(c)}).exchange(t, false, tt.requests...), tt.answered)
		_ = c.Close()
		server.Close()
	}
}
