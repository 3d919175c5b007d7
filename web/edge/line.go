package edge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Line is the connection of an answer that lasts for hours and sends little, taken
// over from net/http: its buffers, 10 KiB, are freed. The handler continues as
// before, but the connection is closed behind the answer. A line belongs to one
// goroutine.
type Line struct {
	conn     *wireConn
	ctx      context.Context // ends when the client hangs up
	hungUp   context.CancelFunc
	unhook   func() bool
	received chan struct{} // closed when the client is no longer listened to
	sent     int
}

// lastWords is how long a line may still write when the server stops.
const lastWords = 5 * time.Second

// CanTakeOver reports whether the connection of a request can become a line. Then the
// head of the answer has to say that the connection will be closed.
func CanTakeOver(r *http.Request) bool {
	_, plain := connOf(r)
	return plain && r.ProtoMajor == 1 && r.ProtoMinor >= 1 && r.Method != http.MethodHead
}

// TakeOver makes a line of the connection of a request, to which the head of the
// answer was written. The line is cut some time after stopping ends.
func TakeOver(stopping context.Context, w http.ResponseWriter, r *http.Request) (*Line, error) {
	conn, plain := connOf(r)
	if !plain {
		return nil, errors.New("take over a connection: it is not a plain one")
	}
	_, buffers, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over a connection: %w", err)
	}
	// net/http refers to the two until the handler returns, but has no use for them.
	*buffers.Reader, *buffers.Writer, conn.recent = bufio.Reader{}, bufio.Writer{}, recentBytes{}
	l := &Line{conn: conn, received: make(chan struct{})}
	l.ctx, l.hungUp = context.WithCancel(r.Context())
	l.unhook = context.AfterFunc(stopping, func() {
		time.AfterFunc(lastWords, func() { _ = conn.Close() }) // mostly it is closed by then
	})
	go l.listen()
	return l, nil
}

// listen waits until the client hangs up. As in net/http, a client that sends
// something instead is listened to no more.
func (l *Line) listen() {
	defer close(l.received)
	if n, err := l.conn.TCPConn.Read(make([]byte, 1)); n == 0 && err != nil {
		l.hungUp()
	}
}

// Context ends when the client hangs up.
func (l *Line) Context() context.Context { return l.ctx }

// Write sends a chunk. It implements io.Writer.
func (l *Line) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // an empty chunk would be the last one
	}
	if _, err := l.conn.Write(fmt.Appendf(nil, "%x\r\n%s\r\n", len(p), p)); err != nil {
		return 0, err
	}
	l.sent += len(p)
	return len(p), nil
}

// Flush does nothing: what is written was sent.
func (l *Line) Flush() error { return nil }

// SetWriteDeadline bounds what is written from now on.
func (l *Line) SetWriteDeadline(at time.Time) error { return l.conn.SetWriteDeadline(at) }

// Sent returns how many bytes of the body were sent.
func (l *Line) Sent() int { return l.sent }

// End sends the last chunk.
func (l *Line) End() error {
	_, err := l.conn.Write([]byte("0\r\n\r\n"))
	return err
}

// Close closes the connection. Without End, the client sees that something is missing.
func (l *Line) Close() error {
	l.unhook()
	l.hungUp()
	err := l.conn.Close()
	<-l.received
	return err
}
