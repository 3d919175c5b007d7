package edge_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/web/edge"
)

// lasting is a server whose handler responds over lines. It allows one connection.
type lasting struct {
	*httptest.Server
	ended chan error // the error that ended each line
}

// newLasting returns a server that sends "begin" and, by default, more text. /wait waits
// for the client to disconnect, /flood writes until an error, and /break omits the last
// chunk.
func newLasting(t *testing.T, stopping context.Context) *lasting { //nolint:revive // t comes first in tests
	t.Helper()
	l := &lasting{ended: make(chan error, 10)}
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !edge.CanTakeOver(r) {
			_, _ = io.WriteString(w, "not taken over")
			return
		}
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusOK)
		line, err := edge.TakeOver(stopping, w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer line.Close()
		_, _ = io.WriteString(line, "begin")
		switch r.URL.Path {
		case "/wait":
			<-line.Context().Done()
			l.ended <- line.Context().Err()
			return
		case "/flood":
			for err == nil {
				_, err = line.Write(make([]byte, 1<<20))
			}
			l.ended <- err
			return
		case "/break":
			return
		}
		_, _ = io.WriteString(line, "")
		_, _ = io.WriteString(line, strings.Repeat("x", 100_000))
		_ = line.End()
	}))
	l.Config = edge.Server(l.Config.Handler)
	l.Listener = edge.LimitConnections(l.Config, l.Listener, edge.Bounds{Connections: 1}, nil)
	l.Start()
	t.Cleanup(l.Close)
	return l
}

// open requests a path on a new connection and reads the first word.
func (l *lasting) open(t *testing.T, path string) *http.Response {
	t.Helper()
	client := http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	response, err := client.Get(l.URL + path)
	must.OK(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	must.OK(t, must.Error2(io.ReadFull(response.Body, make([]byte, len("begin")))))
	return response
}

func (l *lasting) wantEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-l.ended:
		if err == nil {
			t.Error("the line did not end")
		}
	case <-time.After(must.Patience):
		t.Fatal("the handler does not notice the end")
	}
}

func TestALineIsABodyInChunks(t *testing.T) {
	l := newLasting(t, t.Context())
	whole := l.open(t, "/")
	if rest, err := io.ReadAll(whole.Body); err != nil || len(rest) != 100_000 || !whole.Close {
		t.Errorf("%d bytes, %v, header %v", len(rest), err, whole.Header)
	}
	if _, err := io.ReadAll(l.open(t, "/break").Body); err != io.ErrUnexpectedEOF {
		t.Errorf("a line without an end: %v", err)
	}
}

// TestALineKeepsItsPlace opens a line on the only connection: the next client must wait
// until it is closed, and no longer.
func TestALineKeepsItsPlace(t *testing.T) {
	l := newLasting(t, t.Context())
	first := l.open(t, "/wait")
	second := make(chan *http.Response)
	go func() { second <- l.open(t, "/wait") }()
	select {
	case <-second:
		t.Fatal("a second connection is served while the line is open")
	case <-time.After(100 * time.Millisecond):
	}
	_ = first.Body.Close()
	l.wantEnd(t)
	_ = (<-second).Body.Close()
	l.wantEnd(t)
}

// The client does not read, so the handler blocks in Write.
func TestALineIsCutWhenTheServerStops(t *testing.T) {
	t.Parallel() // takes seconds
	stopping, stop := context.WithCancel(t.Context())
	l := newLasting(t, stopping)
	l.open(t, "/flood")
	stop()
	l.wantEnd(t)
}

// TestOnlyPlainConnectionsAreTakenOver tries connections whose buffers net/http needs.
func TestOnlyPlainConnectionsAreTakenOver(t *testing.T) {
	l := newLasting(t, t.Context())
	for _, request := range []*http.Request{
		{ProtoMajor: 1, ProtoMinor: 1, Method: "GET"},
		{ProtoMajor: 2, Method: "GET"},
	} {
		if edge.CanTakeOver(request) {
			t.Errorf("took over a connection of %v that is not ours", request)
		}
	}
	response, err := http.Head(l.URL)
	if err != nil || response.StatusCode != http.StatusOK || response.Close {
		t.Errorf("HEAD: %v %v", response, err)
	}
}
