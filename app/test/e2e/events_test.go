package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

// streamEvent is an event of a stream.
type streamEvent struct{ id, kind, job, status, text string }

// listen opens a stream and delivers its events until the stream or the test ends. It
// returns once the stream has sent all past events.
func (u user) listen(path, after string) (events <-chan streamEvent, protocol string) {
	u.t.Helper()
	ctx, cancel := context.WithCancel(u.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", u.base+path, nil)
	must.OK(u.t, err)
	r.Header.Set("x-api-key", u.key)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	client := *u.http
	client.Timeout = 0 // a stream lasts as long as the test
	resp, err := client.Do(r)
	must.OK(u.t, err)
	if resp.StatusCode != http.StatusOK {
		u.t.Fatalf("GET %s: %d", path, resp.StatusCode)
	}
	all, begun := make(chan streamEvent, 100_000), make(chan bool)
	wait := begun
	go func() {
		defer close(all)
		defer resp.Body.Close()
		defer func() {
			if begun != nil { // the stream ended before it had sent all past events
				close(begun)
			}
		}()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for e := (streamEvent{}); lines.Scan(); {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); {
			case field == "id":
				e.id = value
			case field == "event":
				e.kind = value
			case field == "data":
				var data struct{ JobName, Status, Text string }
				_ = json.Unmarshal([]byte(value), &data) // invalid data makes the test fail later
				e.job, e.status, e.text = data.JobName, data.Status, data.Text
			case value == "listening" && begun != nil:
				close(begun)
				begun = nil
			case lines.Text() == "" && e != (streamEvent{}):
				all <- e
				e = streamEvent{}
			}
		}
	}()
	u.t.Cleanup(func() {
		cancel()
		for range all {
		}
	})
	select {
	case <-wait:
	case <-time.After(patience):
		u.t.Fatalf("GET %s: no event received", path)
	}
	return all, resp.Proto
}

// waitForEvent waits for an event of the given kind about a job; an empty status matches any.
func (u user) waitForEvent(events <-chan streamEvent, kind, job, status string) (e streamEvent) {
	u.t.Helper()
	for e.kind != kind || e.job != job || status != "" && e.status != status {
		e = u.nextEvent(events, kind+" "+job+" "+status)
	}
	return e
}

// nextEvent returns the next event of a stream, and fails the test if there is none.
// awaited describes the expected event.
func (u user) nextEvent(events <-chan streamEvent, awaited string) streamEvent {
	u.t.Helper()
	select {
	case e, open := <-events:
		if !open {
			u.t.Fatalf("the stream ended before the event %s", awaited)
		}
		return e
	case <-time.After(patience):
		u.t.Fatalf("no event %s", awaited)
	}
	return streamEvent{}
}

// TestEventsComeAtOnceThroughNginx configures nginx to buffer as much as possible; events
// must arrive immediately.
func TestEventsComeAtOnceThroughNginx(t *testing.T) {
	for protocol, listens := range map[string]string{"HTTP/1.1": " ssl;", "HTTP/2.0": " ssl http2;"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{algorithms: map[string]string{"shell.toml": shellFile}})
			u := s.user("lab", "ann@lab.example")
			direct := s.base
			s.nginx("/molrun/", freeAddress(t), " ssl;", listens, "proxy_buffering off;", "proxy_buffering on;")
			events, spoken := u.listen("/events", "")
			must.Equal(t, "nginx speaks", spoken, protocol)
			s.base = direct
			u.submit("a", "shell", `{"script":"echo hello"}`)
			for _, status := range []string{"QUEUED", "RUNNING", "COMPLETED"} {
				u.waitForEvent(events, "job", "a", status)
			}
		})
	}
}

// TestReadersThatStallAreCutOff has a client that never reads. The service must
// disconnect it, and nothing else must wait for it.
func TestReadersThatStallAreCutOff(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[limits]\nanswer_time = \"1s\"\n", algorithms: map[string]string{"shell.toml": shellFile}})
	u := s.user("lab", "ann@lab.example")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	must.OK(t, err)
	defer conn.Close()
	must.OK(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: molrun\r\nx-api-key: %s\r\n\r\n", u.key)
	must.OK(t, err)
	events, _ := u.listen("/events", "")
	u.submit("a", "shell", `{"script":"echo hello"}`)
	u.finished("a")
	note := strings.Repeat("n", 4000)
	s.eventually("the client is disconnected", func() bool {
		for n := range 200 {
			u.do("PATCH", "/jobs/a", fmt.Sprintf(`{"note":"%d %s"}`, n, note)).want(200)
		}
		return strings.Contains(s.log.String(), "event stream interrupted")
	})
	u.submit("b", "shell", `{"script":"echo hello"}`)
	u.waitForEvent(events, "job", "b", "COMPLETED")
}

func TestReadmeFollowsAJobAsWritten(t *testing.T) {
	t.Parallel()
	must.Installed(t, "curl")
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	u.submit("first", "shell", `{"script":"echo hello"}`)
	shell := exec.Command("sh", "-c", readme(t, "run: follow"))
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "BASE=" + s.base, "KEY=" + u.key}
	out, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"text":"hello\n"`) || !strings.Contains(string(out), "\nevent: end\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
