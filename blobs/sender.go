package blobs

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"molrun/blobs/result"
)

// pieceSize is the number of bytes of a file sent before the deadline is extended.
const pieceSize = 8 << 20

// sender is the handler's ResponseWriter. It passes files to the connection's ReadFrom in
// pieces, so that the kernel copies them (sendfile). It extends the write deadline with
// each piece and counts the bytes.
type sender struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	moved   time.Time // when the write deadline was last extended
	status  int
	bytes   int64
	err     error // the connection's first error

	interrupted atomic.Bool // stop reading the body

	// While withhold416 is set, a 416 response sets withheld instead of being sent:
	// http.ServeContent would write it as text.
	withhold416, withheld bool
}

// rangeSender is content that sends its next n bytes itself.
type rangeSender interface {
	SendTo(w io.Writer, n int64) (int64, error)
}

var _ rangeSender = (*result.Content)(nil)

func newSender(w http.ResponseWriter, idle time.Duration) *sender {
	return &sender{ResponseWriter: w, control: http.NewResponseController(w), idle: idle}
}

// Unwrap lets http.ResponseController find the connection.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (s *sender) WriteHeader(status int) {
	if s.withhold416 && status == http.StatusRequestedRangeNotSatisfiable {
		s.withheld = true
		return
	}
	if s.status == 0 && status >= 200 {
		s.status = status
	}
	s.extendDeadline()
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *sender) Write(p []byte) (int, error) {
	if s.withheld && s.withhold416 {
		return len(p), nil
	}
	s.recordStatus()
	if time.Since(s.moved) > s.idle/8 {
		s.extendDeadline()
	}
	n, err := s.ResponseWriter.Write(p)
	return n, s.count(int64(n), err)
}

// ReadFrom implements io.ReaderFrom.
func (s *sender) ReadFrom(src io.Reader) (int64, error) {
	s.recordStatus()
	left := int64(1<<63 - 1)
	if l, ok := src.(*io.LimitedReader); ok {
		src, left = l.R, l.N
	}
	switch src := src.(type) {
	case rangeSender:
		return src.SendTo(s, left)
	case *os.File:
		if left >= result.SmallFile {
			return s.sendFile(src, left)
		}
	}
	return io.Copy(onlyWriter{s}, io.LimitReader(src, left))
}

// onlyWriter hides ReadFrom.
type onlyWriter struct{ io.Writer }

// sendFile sends the next left bytes of f, or fewer if f ends earlier.
func (s *sender) sendFile(f *os.File, left int64) (int64, error) {
	// Buffered data must be sent before the kernel takes over, and the connection's
	// ReadFrom does not report a failure to do so.
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, s.count(0, err)
	}
	var sent int64
	for sent < left {
		piece := min(left-sent, pieceSize)
		n, err := s.sendPiece(f, piece)
		sent += n
		if err != nil || n < piece {
			return sent, err
		}
	}
	return sent, nil
}

// sendPiece sends the next n bytes of f. It waits for a slow client as long as the client
// accepts any bytes.
func (s *sender) sendPiece(f *os.File, n int64) (int64, error) {
	start, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	var sent int64
	for {
		s.extendDeadline()
		took, err := io.Copy(s.ResponseWriter, &io.LimitedReader{R: f, N: n - sent})
		sent += took
		err = s.count(took, err)
		if took == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return sent, err
		}
		if _, err := f.Seek(start+sent, io.SeekStart); err != nil {
			return sent, err
		}
		s.err = nil
	}
}

// recordStatus records the status implied by the first byte.
func (s *sender) recordStatus() {
	if s.status == 0 {
		s.status = http.StatusOK
	}
}

func (s *sender) count(n int64, err error) error {
	s.bytes += n
	if s.err == nil {
		s.err = err
	}
	return err
}

// extendDeadline lets the next write stall for the idle time. Only the writers of tests
// do not support deadlines. With any other writer, the next write reports the error.
func (s *sender) extendDeadline() {
	s.moved = time.Now()
	_ = s.control.SetWriteDeadline(s.moved.Add(s.idle))
}

// extendReadDeadline lets the next read of the body stall for the idle time.
func (s *sender) extendReadDeadline() {
	_ = s.control.SetReadDeadline(time.Now().Add(s.idle))
	if s.interrupted.Load() { // possibly set before the line above
		_ = s.control.SetReadDeadline(longAgo)
	}
}

// longAgo is a deadline in the past.
var longAgo = time.Unix(1, 0)

// interrupt stops reading the body. It can be called from any goroutine during the
// request.
func (s *sender) interrupt() {
	s.interrupted.Store(true)
	_ = s.control.SetReadDeadline(longAgo)
}

// endReading removes the read deadline, so that it cannot abort the request while the
// received file is stored.
func (s *sender) endReading() {
	_ = s.control.SetReadDeadline(time.Time{})
}
