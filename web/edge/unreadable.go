package edge

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/web/respond"
)

// wireConn is a connection that rewrites net/http's own responses. Input that is not an
// HTTP request reaches no handler: net/http responds in plain text and closes the
// connection. Clients get an error object instead, as for any other error.
type wireConn struct {
	*net.TCPConn             // embedded for all its optional interfaces
	answering    atomic.Bool // a handler has been called for the current request
	recent       recentBytes // needs no lock: net/http reads, serves and waits in turn
	closed       func()      // called once on close, if taken over
	once         sync.Once
	compute      *limit.Slots           // for POST requests, which may compute; nil means no limit
	silent       atomic.Pointer[func()] // releases the slot of a connection without a complete request
	arrived      atomic.Pointer[func()] // releases the slot of a request not yet admitted
}

// net/http calls ReadFrom to send files with sendfile.
var _ io.ReaderFrom = (*wireConn)(nil)

// wireKey is the context key of a request's connection.
type wireKey struct{}

// connOf returns the connection of a request, or false if it is not a plain TCP
// connection.
func connOf(r *http.Request) (*wireConn, bool) {
	c, ok := r.Context().Value(wireKey{}).(*wireConn)
	return c, ok
}

// trackAnswers wraps the server's handler to record when a handler begins to respond.
func trackAnswers(server *http.Server) {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		closeIfFramedTwice(w, r)
		if c, ok := connOf(r); ok {
			c.answering.Store(true)
		}
		next.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, wireKey{}, c)
	}
}

// newWireConn wraps an accepted TCP connection. It returns other connections unchanged.
func newWireConn(c net.Conn, compute *limit.Slots) (wrapped net.Conn, ok bool) {
	if tcp, ok := c.(*net.TCPConn); ok {
		return &wireConn{TCPConn: tcp, compute: compute}, true
	}
	return c, false
}

// markRequestRead records that a complete request was read from a connection, possibly through
// TLS, or that the connection has ended.
func markRequestRead(c net.Conn) {
	if outer, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = outer.NetConn()
	}
	if w, ok := c.(*wireConn); ok {
		if release := w.silent.Swap(nil); release != nil {
			(*release)()
		}
	}
}

// markResponseDone records that a response is complete and the next request can follow.
func markResponseDone(c net.Conn) {
	if c, ok := c.(*wireConn); ok {
		c.answering.Store(false)
		c.recent.between = true
	}
}

// Read implements net.Conn.
func (c *wireConn) Read(p []byte) (int, error) {
	c.admitted() // the client may be slow to send the rest of the request
	n, err := c.TCPConn.Read(p)
	answering := c.answering.Load()
	c.recent.add(p[:n], answering)
	if c.compute != nil && !answering && bytes.HasPrefix(p[:n], []byte("POST ")) {
		leave := c.compute.Arrive()
		c.arrived.Store(&leave)
	}
	return n, err
}

// Admitted records that the user of a request is known. From then on, the request waits
// among that user's requests and no longer counts toward the limit of its address.
func Admitted(r *http.Request) {
	if release, ok := r.Context().Value(anonymousKey{}).(func()); ok {
		release()
	}
	if c, ok := connOf(r); ok {
		c.admitted()
	}
}

func (c *wireConn) admitted() {
	if leave := c.arrived.Swap(nil); leave != nil {
		(*leave)()
	}
}

// Close implements net.Conn.
func (c *wireConn) Close() error {
	c.admitted()
	if c.closed != nil {
		c.once.Do(c.closed)
	}
	return c.TCPConn.Close()
}

// Write implements net.Conn. net/http writes each of its own responses in a single call.
func (c *wireConn) Write(p []byte) (int, error) {
	if c.answering.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(unreadable(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unreadable converts net/http's response to an unreadable request to ours.
func unreadable(answer []byte) []byte {
	line, _, _ := strings.Cut(string(answer), "\r\n")
	_, status, _ := strings.Cut(line, " ")
	err := fault.Errorf(fault.BadRequest, "This is not a readable HTTP request (%s); check the client that sends it.", strings.ToLower(reason(status)))
	switch {
	case strings.HasPrefix(status, "431 "):
		err = headerTooLarge()
	case bytes.Contains(answer, []byte("HTTPS server")):
		err = fault.Errorf(fault.BadRequest, "This port accepts only HTTPS; begin the address with https://.")
	}
	w := newRecorder()
	w.header = http.Header{respond.RequestID: {rand.Text()}, "Connection": {"close"}}
	respond.Error(w, new(http.Request), err)
	return w.bytes()
}

// reason returns the most precise part of a status line's text.
func reason(status string) string {
	if _, precise, found := strings.Cut(status, ": "); found {
		return precise
	}
	_, text, _ := strings.Cut(status, " ")
	return text
}
