package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"molrun/app/fault"
)

// What a client sends that is no request reaches no handler: net/http itself
// answers, in plain text, and hangs up. A wireConn is a connection on which
// that answer, too, is said as all others are.
type wireConn struct {
	*net.TCPConn             // with all its abilities
	answering    atomic.Bool // a handler was called for the current request
}

// net/http sends files through ReadFrom, so that they need not pass through this
// process.
var _ io.ReaderFrom = (*wireConn)(nil)

// wireKey names a connection in the context of its requests, the only place
// where net/http lets a handler find it.
type wireKey struct{}

// followAnswers has the server note when a handler begins to answer.
func followAnswers(server *http.Server) {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(wireKey{}).(*wireConn); ok {
			c.answering.Store(true)
		}
		next.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, wireKey{}, c)
	}
}

// onWire gives an accepted connection as a wireConn. Others than those of TCP
// stay as they are.
func onWire(c net.Conn) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		return &wireConn{TCPConn: tcp}
	}
	return c
}

// rested notes that an answer is over and a request may come.
func rested(c net.Conn) {
	if c, ok := c.(*wireConn); ok {
		c.answering.Store(false)
	}
}

// Write implements net.Conn. What net/http says by itself comes in one piece.
func (c *wireConn) Write(p []byte) (int, error) {
	if c.answering.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(unreadable(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unreadable gives the answer to what is no request, from net/http's.
func unreadable(answer []byte) []byte {
	line, _, _ := strings.Cut(string(answer), "\r\n")
	_, status, _ := strings.Cut(line, " ")
	err := fault.Errorf(fault.BadRequest, "What came is no request that can be read (%s); look at what sends it.", strings.ToLower(reason(status)))
	switch {
	case strings.HasPrefix(status, "431 "):
		err = headerTooLarge()
	case bytes.Contains(answer, []byte("HTTPS server")):
		err = fault.Errorf(fault.BadRequest, "This port takes HTTPS alone; begin the address with https://.")
	}
	w := &wholeAnswer{header: http.Header{requestIDHeader: {rand.Text()}, "Connection": {"close"}}}
	WriteError(w, new(http.Request), err)
	return w.bytes()
}

// reason gives what a status line says after its number: the most precise part.
func reason(status string) string {
	if _, precise, found := strings.Cut(status, ": "); found {
		return precise
	}
	_, text, _ := strings.Cut(status, " ")
	return text
}

// wholeAnswer is an answer as one text.
type wholeAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *wholeAnswer) Header() http.Header         { return w.header }
func (w *wholeAnswer) WriteHeader(status int)      { w.status = status }
func (w *wholeAnswer) Write(p []byte) (int, error) { return w.body.Write(p) }

func (w *wholeAnswer) bytes() []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status))
	_ = w.header.Write(&text) // a buffer takes all
	text.WriteString("\r\n")
	text.Write(w.body.Bytes())
	return text.Bytes()
}
