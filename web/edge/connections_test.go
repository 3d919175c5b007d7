package edge_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/web/edge"
)

// lookalike is a body that begins like net/http's own error responses.
var lookalike = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" + strings.Repeat("x", 64<<10)

// bounded is a server with limited connections. Requests to /held wait until held is
// closed.
type bounded struct {
	t       *testing.T
	address string
	open    atomic.Int64 // open connections
	most    atomic.Int64
	held    chan struct{}
}

func newBounded(t *testing.T, most int) *bounded {
	t.Helper()
	b := &bounded{t: t, held: make(chan struct{})}
	server := edge.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/held":
			<-b.held
		case "/lookalike":
			w.Header().Set("Content-Length", fmt.Sprint(len(lookalike)))
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, lookalike) // larger than any buffer
			return
		}
		fmt.Fprint(w, "ok")
	}))
	server.ReadHeaderTimeout = time.Hour // no connection must be closed by a timeout
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	listener := edge.LimitConnections(server, inner, edge.Bounds{Connections: most}, nil)
	follow := server.ConnState
	server.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			b.most.Store(max(b.most.Load(), b.open.Add(1)))
		case http.StateClosed:
			b.open.Add(-1)
		}
		follow(c, state)
	}
	b.address = inner.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		must.OK(t, server.Close())
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return b
}

// caller is one client connection.
type caller struct {
	net.Conn
	from *bufio.Reader
}

func (b *bounded) dial() *caller {
	b.t.Helper()
	c, err := net.Dial("tcp", b.address)
	must.OK(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &caller{c, bufio.NewReader(c)}
}

func (c *caller) send(path string) error {
	_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	return err
}

// ask sends a request and reads its response.
func (c *caller) ask(path string) error {
	if err := c.send(path); err != nil {
		return err
	}
	return c.answer()
}

func (c *caller) answer() error {
	response, err := http.ReadResponse(c.from, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func TestIdleConnectionsAreClosedForNewOnes(t *testing.T) {
	b := newBounded(t, 4)
	var clients []*caller
	for range 40 { // no client closes its connection
		c := b.dial()
		must.OK(t, c.ask("/"))
		clients = append(clients, c)
	}
	if got := b.most.Load(); got > 4 {
		t.Errorf("%d connections were open at once", got)
	}
	if _, err := clients[0].from.ReadByte(); err != io.EOF {
		t.Errorf("the longest idle connection: %v, want it closed", err)
	}
	must.OK(t, clients[39].ask("/"))
}

func TestNewConnectionsWaitForBusyOnes(t *testing.T) {
	b := newBounded(t, 2)
	first, second, third := b.dial(), b.dial(), b.dial()
	for _, c := range []*caller{first, second, third} {
		must.OK(t, c.send("/held"))
	}
	late := b.dial()
	must.OK(t, late.send("/"))
	close(b.held)
	for _, c := range []*caller{first, second, third, late} {
		must.OK(t, c.answer())
	}
	if got := b.most.Load(); got > 2 {
		t.Errorf("%d connections were open at once", got)
	}
}

// TestOneAddressLeavesConnectionsToOthers opens more connections with incomplete requests
// than one address can have, and more than can wait.
func TestOneAddressLeavesConnectionsToOthers(t *testing.T) {
	b := newBounded(t, 40) // one address can have 10 without a complete request
	from := func(address string) *caller {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		c, err := d.Dial("tcp", b.address)
		must.OK(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return &caller{c, bufio.NewReader(c)}
	}
	var held []net.Conn
	for range 100 {
		if c, err := net.Dial("tcp", b.address); err == nil { // otherwise it was closed at once
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Half")
			held = append(held, c)
		}
	}
	for range 8 {
		must.OK(t, from("127.0.0.2").ask("/"))
	}
	waiting := from("127.0.0.2")
	must.OK(t, waiting.send("/held"))
	for _, c := range held {
		_ = c.Close()
	}
	must.Become(t, "the address is served again", func() bool {
		c, err := net.Dial("tcp", b.address)
		if err != nil {
			return false
		}
		defer c.Close()
		return (&caller{c, bufio.NewReader(c)}).ask("/") == nil
	})
	close(b.held)
	must.OK(t, waiting.answer())
}

func TestListenerClosesWhileAClientWaits(t *testing.T) {
	b := newBounded(t, 1)
	held := b.dial()
	must.OK(t, held.send("/held"))
	waiting := b.dial()
	must.OK(t, waiting.send("/"))
	close(b.held) // lets the cleanup stop the server, whichever client it accepted
}
