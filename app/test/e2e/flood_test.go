package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// openFiles counts the files that the server has open.
func (s *instance) openFiles() int {
	s.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.process.Process.Pid))
	must.OK(s.t, err)
	return len(entries)
}

// metric returns a value from GET /metrics.
func (s *instance) metric(name string) float64 {
	s.t.Helper()
	text := user{s, ""}.do("GET", "/metrics", nil).want(200).body
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if found == nil {
		s.t.Fatalf("no metric %s", name)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	must.OK(s.t, err)
	return value
}

// openConnections opens connections that send the beginning of a request and then
// stall.
func (s *instance) openConnections(count int, begin string) (conns []net.Conn) {
	s.t.Helper()
	for range count {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.base, "http://"), patience)
		must.OK(s.t, err)
		s.t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, begin)
		must.OK(s.t, err)
		conns = append(conns, c)
	}
	return conns
}

func TestConnectionsWithSlowHeadersAreLimited(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[limits]\nconnections = 32\nheader_time = \"1s\"\n"})
	u := s.user("lab", "ann@lab.example")
	before := s.openFiles()
	s.openConnections(200, "GET /jobs HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	u.do("GET", "/jobs", nil).want(200) // once the slow ones have timed out
	if open := s.openFiles(); open > before+32+2 {
		t.Errorf("%d open files, %d before", open, before)
	}
}

func TestSlowBodiesOfOneKeyLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[limits]\nbody_time = \"10m\"\n"})
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	head := "POST /submit-job HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nx-api-key: %s\r\n\r\n{"
	s.openConnections(100, fmt.Sprintf(head, "none")) // refused before the body is read
	conns := s.openConnections(1100, fmt.Sprintf(head, ann.key))
	s.eventually("further requests of this key are refused", func() bool { return ann.do("GET", "/jobs", nil).status == 429 })
	for range 20 {
		bob.do("GET", "/jobs", nil).want(200)
		bob.do("POST", "/validate-job", `{"jobName":"j","type":"cg-idp","settings":{"sequences":["ACDEFG"]}}`).want(200)
	}
	ann.do("GET", "/jobs", nil).code(429, "RATE_LIMITED")
	for _, c := range conns {
		must.OK(t, c.Close())
	}
	s.eventually("this key is accepted again", func() bool { return ann.do("GET", "/jobs", nil).status == 200 })
}

// endless returns n bytes of an unterminated JSON text.
func endless(n int64) io.Reader {
	return io.LimitReader(io.MultiReader(strings.NewReader(`{"jobName":"`), digits{}), n)
}

// digits is an endless stream of the digit 0.
type digits struct{}

func (digits) Read(p []byte) (int, error) { return copy(p, zeroDigits), nil }

// zeroDigits is copied, since the race detector makes single writes slow.
var zeroDigits = strings.Repeat("0", 32<<10)

func TestHugeBodiesAndHeadersUseBoundedMemory(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	done := make(chan error)
	const clients = 30
	for i := range clients {
		go func() {
			path := []string{"/submit-job", "/submit-batch", "/validate-job"}[i%3]
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.base+path, endless(100<<20))
			if err == nil {
				r.Header.Set("x-api-key", u.key)
				r.Header.Set("Content-Type", "application/json")
				err = refusedAs(r, 413, 503)
			}
			done <- err
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	u.do("GET", "/jobs", nil, "Cookie", strings.Repeat("x", 60_000)).want(200)
	u.do("GET", "/jobs", nil, "Cookie", strings.Repeat("x", 64<<10)).want(422)
	// A header far over the limit is not read to its end.
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.base+"/jobs", nil)
	must.OK(t, err)
	r.Header.Set("Cookie", strings.Repeat("x", 200_000))
	must.OK(t, refusedAs(r, 422))
	if heap := s.metric("go_memstats_heap_sys_bytes"); heap > 350<<20 {
		t.Errorf("the heap has %.0f MiB, though all bodies together are limited to 96", heap/(1<<20))
	}
	u.do("GET", "/jobs", nil).want(200)
}

// refusedAs sends a request that must be refused with one of the statuses or cut
// off.
func refusedAs(r *http.Request, statuses ...int) error {
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	var broken *net.OpError
	if errors.As(err, &broken) { // the connection was cut while the body was being sent
		return nil
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for _, want := range statuses {
		if response.StatusCode == want {
			return nil
		}
	}
	return fmt.Errorf("%s %s: status %d, want one of %v", r.Method, r.URL.Path, response.StatusCode, statuses)
}

func TestServiceWorksWithFewOpenFiles(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{files: 48, config: "[limits]\nheader_time = \"1s\"\ntransfer_idle = \"1s\"\n"})
	if s.logged("the system allows few open files, so fewer connections and transfers are taken; raise it (LimitNOFILE, ulimit -n) for more", "files") != "48" {
		t.Errorf("the log does not mention the low open file limit: %s", s.log)
	}
	u := s.user("lab", "ann@lab.example")
	for range 6 { // with eight connections each
		g := u.grant("a.txt")
		path := strings.TrimPrefix(g.UploadURL, s.base)
		s.openConnections(3, "PUT "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
		s.openConnections(5, "GET /jobs HTTP/1.1\r\nHost: x\r\n")
		if open := s.openFiles(); open > 48 {
			t.Errorf("%d open files", open)
		}
		s.user("lab", "bob@lab.example") // uses the control socket
	}
	u.upload("b.txt", "text")
	u.do("GET", "/jobs", nil).want(200)
	s.stop()
	if strings.Contains(s.log.String(), "too many open files") {
		t.Errorf("the service ran out of files: %s", s.tail())
	}
}
