package edge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Line is a connection taken over from net/http, for a response that lasts hours and
// sends little. Its 10 KiB of buffers are freed. The handler continues as usual, but the
// connection is closed after the response. A Line is not safe for concurrent use.
type Line struct {
	conn     *wireConn
	ctx      context.Context // canceled when the client disconnects
	hungUp   context.CancelFunc
	unhook   func() bool
	received chan struct{} // closed when the client is no longer monitored
	sent     int
}

// shutdownGrace is how long a line can still write after the server stops.
const shutdownGrace = 5 * time.Second

// CanTakeOver reports whether the connection of a request can become a line. If so, the
// response headers must say that the connection will be closed.
func CanTakeOver(r *http.Request) bool {
	_, plain := connOf(r)
	return plain && r.ProtoMajor == 1 && r.ProtoMinor >= 1 && r.Method != http.MethodHead
}

// TakeOver turns the connection of a request into a line. The response headers must have
// been written. The line is closed shutdownGrace after stopping ends.
func TakeOver(stopping context.Context, w http.ResponseWriter, r *http.Request) (*Line, error) {
	conn, plain := connOf(r)
	if !plain {
		return nil, errors.New("take over a connection: not a plain TCP connection")
	}
	_, buffers, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over a connection: %w", err)
	}
	// Free the buffers. net/http keeps pointers to both until the handler returns, but no
	// longer uses them.
	*buffers.Reader, *buffers.Writer, conn.recent = bufio.Reader{}, bufio.Writer{}, recentBytes{}
	l := &Line{conn: conn, received: make(chan struct{})}
	l.ctx, l.hungUp = context.WithCancel(r.Context())
	l.unhook = context.AfterFunc(stopping, func() {
		time.AfterFunc(shutdownGrace, func() { _ = conn.Close() }) // usually already closed by then
	})
	go l.listen()
	return l, nil
}

// listen waits until the client disconnects. As in net/http, a client that sends
// something instead is no longer monitored.
func (l *Line) listen() {
	defer close(l.received)
	if n, err := l.conn.TCPConn.Read(make([]byte, 1)); n == 0 && err != nil {
		l.hungUp()
	}
}

// Context returns a context that is canceled when the client disconnects.
func (l *Line) Context() context.Context { return l.ctx }

// Write sends a chunk. It implements io.Writer.
func (l *Line) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // an empty chunk would end the body
	}
	if _, err := l.conn.Write(fmt.Appendf(nil, "%x\r\n%s\r\n", len(p), p)); err != nil {
		return 0, err
	}
	l.sent += len(p)
	return len(p), nil
}

// Flush does nothing: Write does not buffer.
func (l *Line) Flush() error { return nil }

// SetWriteDeadline sets the deadline of later writes.
func (l *Line) SetWriteDeadline(at time.Time) error { return l.conn.SetWriteDeadline(at) }

// Sent returns the number of body bytes sent.
func (l *Line) Sent() int { return l.sent }

// End sends the last chunk.
func (l *Line) End() error {
	_, err := l.conn.Write([]byte("0\r\n\r\n"))
	return err
}

// Close closes the connection. Without End, the client sees an incomplete body.
func (l *Line) Close() error {
	l.unhook()
	l.hungUp()
	err := l.conn.Close()
	<-l.received
	return err
}
