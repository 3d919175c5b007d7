package edge_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// answerTo sends text and reads the response until the connection closes.
func (b *bounded) answerTo(text string) (*http.Response, string) {
	b.t.Helper()
	c := b.dial()
	go func() { _, _ = io.WriteString(c, text) }() // the server may close the connection before the end
	response, err := http.ReadResponse(c.from, nil)
	if err != nil {
		b.t.Fatalf("%.60q: %v", text, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatalf("%.60q: %v", text, err)
	}
	return response, string(body)
}

func TestUnreadableRequestsGetErrorObjects(t *testing.T) {
	b := newBounded(t, 4)
	for name, tt := range map[string]struct {
		text   string
		status int
		says   string
	}{
		"not HTTP":               {"hello\r\n\r\n", 400, "not a readable HTTP request"},
		"no host":                {"GET / HTTP/1.1\r\n\r\n", 400, "missing required host header"},
		"two hosts":              {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad request"},
		"a name with a space":    {"GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", 400, "invalid header name"},
		"a value with a NUL":     {"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", 400, "bad request"},
		"a strange encoding":     {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400, "not implemented"},
		"a version of its own":   {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 400, "unsupported protocol version"},
		"a strange expectation":  {"PUT / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", 400, "expectation failed"},
		"two lengths":            {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "bad request"},
		"a header without end":   {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 1<<20), 422, "send a smaller header"},
		"very many header lines": {"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 100_000), 422, "send a smaller header"},
	} {
		response, body := b.answerTo(tt.text)
		h := response.Header
		if response.StatusCode != tt.status || !strings.Contains(body, tt.says) || !json.Valid([]byte(body)) || h.Get("Content-Type") != "application/json" ||
			h.Get("X-Request-Id") == "" || !response.Close || tt.status == 400 && !strings.Contains(body, `"code":"BAD_REQUEST"`) {
			t.Errorf("%s: %d %v %s", name, response.StatusCode, h, body)
		}
	}
	must.OK(t, b.dial().ask("/"))
}

func TestUnreadableRequestOnAReusedConnectionGetsAnErrorObject(t *testing.T) {
	b := newBounded(t, 4)
	c := b.dial()
	for range 2 {
		must.OK(t, c.ask("/"))
	}
	must.OK(t, must.Error2(io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")))
	response, err := http.ReadResponse(c.from, nil)
	must.OK(t, err)
	defer response.Body.Close()
	if response.StatusCode != 400 || response.Header.Get("X-Request-Id") == "" {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
}

// TestAnswersOfHandlersAreNeverRewritten uses a handler that sends bytes like net/http's
// own response in a separate write.
func TestAnswersOfHandlersAreNeverRewritten(t *testing.T) {
	b := newBounded(t, 4)
	response, body := b.answerTo("GET /lookalike HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if response.StatusCode != 200 || body != lookalike {
		t.Errorf("%d, %d bytes %.80q; want them as the handler sent them", response.StatusCode, len(body), body)
	}
}
