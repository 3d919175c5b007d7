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

// wireConn is a connection that rewrites net/http's own answers. What is not an
// HTTP request reaches no handler: net/http answers in plain text and hangs up.
// Clients get an error object instead, as for any other error.
type wireConn struct {
	*net.TCPConn             // embedded for all its optional interfaces
	answering    atomic.Bool // a handler was called for the current request
	recent       recentBytes // guarded by net/http: it reads, serves and waits in turn
	closed       func()      // called once, when it is closed after it was taken over
	once         sync.Once
	compute      *limit.Slots           // for requests that may compute; nil has none
	silent       atomic.Pointer[func()] // releases the slot of a connection without a whole request
	arrived      atomic.Pointer[func()] // releases the slot of a request that no handler has admitted yet
}

// net/http sends files with sendfile through ReadFrom.
var _ io.ReaderFrom = (*wireConn)(nil)

// wireKey finds the connection in the context of its requests.
type wireKey struct{}

// connOf returns the connection of a request, false if it is not a plain one.
func connOf(r *http.Request) (*wireConn, bool) {
	c, ok := r.Context().Value(wireKey{}).(*wireConn)
	return c, ok
}

// trackAnswers makes the server note when a handler begins to answer.
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

// newWireConn wraps an accepted TCP connection. Other connections are returned
// as they are.
func newWireConn(c net.Conn, compute *limit.Slots) (wrapped net.Conn, ok bool) {
	if tcp, ok := c.(*net.TCPConn); ok {
		return &wireConn{TCPConn: tcp, compute: compute}, true
	}
	return c, false
}

// markHeard notes that a whole request was read from a connection, which TLS may hide, or that
// it has ended.
func markHeard(c net.Conn) {
	if outer, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = outer.NetConn()
	}
	if w, ok := c.(*wireConn); ok {
		if release := w.silent.Swap(nil); release != nil {
			(*release)()
		}
	}
}

// answered notes that an answer is complete and the next request may come.
func answered(c net.Conn) {
	if c, ok := c.(*wireConn); ok {
		c.answering.Store(false)
		c.recent.between = true
	}
}

// Read implements net.Conn.
func (c *wireConn) Read(p []byte) (int, error) {
	c.admitted() // what is still to come may take the client long
	n, err := c.TCPConn.Read(p)
	answering := c.answering.Load()
	c.recent.add(p[:n], answering)
	if c.compute != nil && !answering && bytes.HasPrefix(p[:n], []byte("POST ")) {
		leave := c.compute.Arrive()
		c.arrived.Store(&leave)
	}
	return n, err
}

// Admitted says that the user of a request is known, so that it waits for its turn
// like the others of that user, and no longer counts among those of its address.
func Admitted(r *http.Request) {
	if release, ok := r.Context().Value(strangerKey{}).(func()); ok {
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

// Write implements net.Conn. net/http writes its own answers in one piece.
func (c *wireConn) Write(p []byte) (int, error) {
	if c.answering.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(unreadable(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unreadable turns net/http's answer to what is not a request into ours.
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
