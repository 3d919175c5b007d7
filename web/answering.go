package web

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// timedWriter is a writer that limits the time to send a response. The time starts with
// the response, because the request may have waited long for a slot or for a change.
type timedWriter struct {
	gin.ResponseWriter
	within time.Duration
	begun  bool
	copied int // bytes that bypassed gin
}

// limitResponseTime limits the time to send the response to a request.
func limitResponseTime(c *gin.Context, within time.Duration) {
	setWriteDeadline(c.Writer, time.Time{}) // clears the previous response's deadline on this connection
	c.Writer = &timedWriter{ResponseWriter: c.Writer, within: within}
}

// setWriteDeadline ignores errors, because only the writers in tests lack deadlines.
func setWriteDeadline(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(at)
}

// WriteHeader implements http.ResponseWriter.
func (w *timedWriter) WriteHeader(status int) {
	w.writeHeader()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *timedWriter) Write(p []byte) (int, error) {
	w.writeHeader()
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom with the server's writer, which lets the kernel copy
// files.
func (w *timedWriter) ReadFrom(src io.Reader) (int64, error) {
	w.writeHeader()
	w.WriteHeaderNow()
	n, err := io.Copy(w.Unwrap(), src)
	w.copied += int(n)
	return n, err
}

// countSent counts response body bytes that bypassed gin.
func countSent(c *gin.Context, n int) {
	if w, ok := c.Writer.(*timedWriter); ok {
		w.copied += n
	}
}

// Size returns the number of body bytes written so far.
func (w *timedWriter) Size() int { return w.ResponseWriter.Size() + w.copied }

func (w *timedWriter) writeHeader() {
	if !w.begun {
		w.begun = true
		setWriteDeadline(w.ResponseWriter, time.Now().Add(w.within))
	}
}

// Unwrap returns the server's writer, as gin's Unwrap does.
func (w *timedWriter) Unwrap() http.ResponseWriter {
	if inner, ok := w.ResponseWriter.(interface{ Unwrap() http.ResponseWriter }); ok {
		return inner.Unwrap()
	}
	return w.ResponseWriter
}
