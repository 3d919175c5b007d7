package web_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"molrun/app/job/audit"
	"molrun/app/test/must"
)

func controlClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}

// sendControl sends a request to the control socket and returns its status and body.
func sendControl(t *testing.T, socket, path, body string) (int, string) {
	t.Helper()
	c := controlClient(socket)
	defer c.CloseIdleConnections()
	resp, err := c.Post("http://molrun"+path, "application/json", strings.NewReader(body))
	must.OK(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.OK(t, err)
	return resp.StatusCode, string(text)
}

func TestControlTakesABodyOfAMebibyte(t *testing.T) {
	socket := start(t).control()
	for size, want := range map[int]int{1 << 20: http.StatusUnprocessableEntity, 1<<20 + 1: http.StatusRequestEntityTooLarge} {
		body := "{}" + strings.Repeat(" ", size-2)
		if status, text := sendControl(t, socket, "/control/keys", body); status != want {
			t.Errorf("%d bytes: %d %s, want %d", size, status, text, want)
		}
	}
}

// TestConnectionEndsWithABodyThatIsTooLarge sends a body just over the limit, without
// announcing its length.
func TestConnectionEndsWithABodyThatIsTooLarge(t *testing.T) {
	socket := start(t).control()
	c := controlClient(socket)
	defer c.CloseIdleConnections()
	body := struct{ io.Reader }{strings.NewReader("{}" + strings.Repeat(" ", 1<<20))}
	resp, err := c.Post("http://molrun/control/keys", "application/json", body)
	must.OK(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
		t.Errorf("status %d, the connection ends: %v", resp.StatusCode, resp.Close)
	}
}

func TestPruneNeedsATime(t *testing.T) {
	socket := start(t).control()
	for before, want := range map[string]string{
		`"endedBefore":"2026-11-20T10:40:00.000Z",`: "",
		`"endedBefore":"yesterday",`:                "use a time such as",
		`"endedBefore":"",`:                         "endedBefore",
		``:                                          "endedBefore",
	} {
		status, text := sendControl(t, socket, "/control/prune", `{`+before+`"dryRun":true}`)
		if ok := status == http.StatusOK; ok != (want == "") || !strings.Contains(text, want) || strings.Count(text, `"loc"`) > 1 {
			t.Errorf("%q: %d %s, want one fault with %q", before, status, text, want)
		}
	}
}

// TestAuditOfFailedAuthenticationsIsBoundedForAllAddresses guesses keys from 40 addresses
// at once.
func TestAuditOfFailedAuthenticationsIsBoundedForAllAddresses(t *testing.T) {
	var log entries
	now := &clock{now: time.Unix(1e9, 0)}
	from := make(chan string, 1)
	s := start(t, func(with *setup) {
		with.options.Audit, with.options.Now = log.add, now.read
		with.address = func() string { return <-from }
	})
	for i := range 40 {
		from <- fmt.Sprintf("192.0.2.%d:4711", i)
		s.as(s.ann[:len(s.ann)-1]+"!", "GET", "/jobs", "")
	}
	same(t, "entries", len(log.take()), 20)
}

func TestPanicIsAuditedAsAnInternalError(t *testing.T) {
	var log entries
	s := start(t, func(with *setup) { with.options.Audit = log.add })
	s.submit("a") // caches the key, so that it works without the store
	log.take()
	s.store.panics.Store(true)
	a := s.as(s.ann, "POST", "/result", `{"jobName":"a"}`)
	s.store.panics.Store(false)
	got := log.take()
	if a.status != http.StatusInternalServerError || len(got) != 1 || got[0].Action != "result.link" || got[0].Result != "INTERNAL" {
		t.Errorf("status %d, audited %+v", a.status, []audit.Entry(got))
	}
}
