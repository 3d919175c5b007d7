package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

// raw sends only the head of a request, unless a header brings the body, and
// returns the response, which must come before the body.
func (u user) raw(method, path string, header ...string) *http.Response {
	u.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(u.base, "http://"))
	must.OK(u.t, err)
	u.t.Cleanup(func() { conn.Close() })
	must.OK(u.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: molrun\r\nx-api-key: %s\r\n%s\r\n\r\n", method, path, u.key, strings.Join(header, "\r\n"))
	must.OK(u.t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.OK(u.t, err)
	u.t.Cleanup(func() { response.Body.Close() })
	return response
}

// TestRequestsOfTwoLengthsEndTheConnection sends requests with Content-Length and
// Transfer-Encoding to a route, a link and an unknown path.
func TestRequestsOfTwoLengthsEndTheConnection(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	var grant struct{ UploadURL string }
	u.do("PUT", "/upload/a.txt", nil).want(200).into(&grant)
	const body = "\r\n2\r\n{}\r\n0\r\n\r\n" // after the empty line
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/validate-job", 200}, {"POST", "/nothing", 404}, {"PUT", strings.TrimPrefix(grant.UploadURL, u.base), 200},
	} {
		chunked := "Content-Type: application/json\r\nTransfer-Encoding: chunked"
		if strings.HasPrefix(tt.path, "/blobs/") {
			chunked = "Transfer-Encoding: chunked"
		}
		if r := u.raw(tt.method, tt.path, chunked+"\r\n"+body); r.StatusCode != tt.status || r.Close {
			t.Errorf("%s, chunked: status %d, closes %v; want %d on a connection that stays", tt.path, r.StatusCode, r.Close, tt.status)
		}
		if r := u.raw(tt.method, tt.path, "Content-Length: 2\r\n"+chunked+"\r\n"+body); r.StatusCode != tt.status || !r.Close {
			t.Errorf("%s, with a length too: status %d, closes %v; want %d and the end of the connection", tt.path, r.StatusCode, r.Close, tt.status)
		}
	}
}

func TestOversizedBodiesAreRefusedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	for _, tt := range []struct {
		path   string
		length int
		status int
	}{
		{"/submit-job", 8 << 20, 100},
		{"/submit-job", 8<<20 + 1, 413},
		{"/validate-job", 8<<20 + 1, 413},
		{"/result", 8<<20 + 1, 413},
		{"/submit-batch", 8<<20 + 1, 100},
		{"/submit-batch", 64 << 20, 100},
		{"/submit-batch", 64<<20 + 1, 413},
	} {
		a := u.raw("POST", tt.path, "Content-Type: application/json", fmt.Sprint("Content-Length: ", tt.length), "Expect: 100-continue")
		if a.StatusCode != tt.status {
			t.Errorf("%s with %d bytes: status %d, want %d", tt.path, tt.length, a.StatusCode, tt.status)
		}
	}
	u.do("POST", "/submit-job", jobBody("large", script(": "+strings.Repeat("x", 8<<20)))).code(413, "BODY_TOO_LARGE")
}
