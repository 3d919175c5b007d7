package blobs

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// pieceSize is how much of a file goes out before the deadline is moved.
const pieceSize = 8 << 20

// sender stands between a handler and the connection. It hands files on to
// the connection's ReadFrom piece by piece, so that the kernel copies them
// (sendfile), moves the write deadline with each piece, and counts.
type sender struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	moved   time.Time // when the deadline was moved last
	status  int
	bytes   int64
	err     error // the first fault of the connection

	// With holdRange set, an answer of 416 is not sent but remembered:
	// http.ServeContent writes it as text.
	holdRange, rangeHeld bool
}

// rangeSender is content that knows how to send a part of itself.
type rangeSender interface {
	sendTo(w io.Writer, n int64) (int64, error)
}

func newSender(w http.ResponseWriter, idle time.Duration) *sender {
	return &sender{ResponseWriter: w, control: http.NewResponseController(w), idle: idle}
}

// Unwrap lets http.ResponseController find the connection.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (s *sender) WriteHeader(status int) {
	if s.holdRange && status == http.StatusRequestedRangeNotSatisfiable {
		s.rangeHeld = true
		return
	}
	if s.status == 0 && status >= 200 {
		s.status = status
	}
	s.moveDeadline()
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *sender) Write(p []byte) (int, error) {
	if s.rangeHeld && s.holdRange {
		return len(p), nil
	}
	s.begin()
	if time.Since(s.moved) > s.idle/8 {
		s.moveDeadline()
	}
	n, err := s.ResponseWriter.Write(p)
	return n, s.count(int64(n), err)
}

// ReadFrom implements io.ReaderFrom.
func (s *sender) ReadFrom(src io.Reader) (int64, error) {
	s.begin()
	left := int64(1<<63 - 1)
	if l, ok := src.(*io.LimitedReader); ok {
		src, left = l.R, l.N
	}
	switch src := src.(type) {
	case rangeSender:
		return src.sendTo(s, left)
	case *os.File:
		if left >= smallFile {
			return s.sendFile(src, left)
		}
	}
	return io.Copy(onlyWriter{s}, io.LimitReader(src, left))
}

// onlyWriter hides ReadFrom.
type onlyWriter struct{ io.Writer }

// sendFile sends the next left bytes of f, fewer where it ends before.
func (s *sender) sendFile(f *os.File, left int64) (int64, error) {
	// What was written so far has to be out before the kernel takes over, and
	// the connection's ReadFrom would not tell that it is not.
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

// sendPiece sends the next n bytes of f. A client that takes its time is
// waited for as long as it takes anything at all.
func (s *sender) sendPiece(f *os.File, n int64) (int64, error) {
	start, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	var sent int64
	for {
		s.moveDeadline()
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

// begin notes the status that is implied where none was given.
func (s *sender) begin() {
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

// moveDeadline gives the connection another while. Writers without deadlines
// belong to tests; on others a failure shows at the next write.
func (s *sender) moveDeadline() {
	s.moved = time.Now()
	_ = s.control.SetWriteDeadline(s.moved.Add(s.idle))
}

// moveReadDeadline does the same for the request's body.
func (s *sender) moveReadDeadline() {
	_ = s.control.SetReadDeadline(time.Now().Add(s.idle))
}

// endReading lifts the deadline, so that it can't end the request while the
// received file is stored.
func (s *sender) endReading() {
	_ = s.control.SetReadDeadline(time.Time{})
}
