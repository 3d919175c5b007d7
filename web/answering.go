package web

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// answering is a writer that bounds the time to send an answer. The time begins
// with the answer: a request may wait long before, for its turn or for a change.
type answering struct {
	gin.ResponseWriter
	within time.Duration
	begun  bool
	copied int // bytes that gin has not seen
}

// limitAnswer bounds the time to send the answer of a request.
func limitAnswer(c *gin.Context, within time.Duration) {
	setWriteDeadline(c.Writer, time.Time{}) // that of the previous answer on the connection may still stand
	c.Writer = &answering{ResponseWriter: c.Writer, within: within}
}

// setWriteDeadline ignores writers without deadlines, which only tests have.
func setWriteDeadline(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(at)
}

// WriteHeader implements http.ResponseWriter.
func (w *answering) WriteHeader(status int) {
	w.writeHeader()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *answering) Write(p []byte) (int, error) {
	w.writeHeader()
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom with the server's own, by which the kernel
// copies files.
func (w *answering) ReadFrom(src io.Reader) (int64, error) {
	w.writeHeader()
	w.WriteHeaderNow()
	n, err := io.Copy(w.Unwrap(), src)
	w.copied += int(n)
	return n, err
}

// countSent counts bytes of an answer's body that were sent past gin.
func countSent(c *gin.Context, n int) {
	if w, ok := c.Writer.(*answering); ok {
		w.copied += n
	}
}

// Size returns the bytes of the body so far.
func (w *answering) Size() int { return w.ResponseWriter.Size() + w.copied }

func (w *answering) writeHeader() {
	if !w.begun {
		w.begun = true
		setWriteDeadline(w.ResponseWriter, time.Now().Add(w.within))
	}
}

// Unwrap returns the server's own writer, as that of gin does.
func (w *answering) Unwrap() http.ResponseWriter {
	if inner, ok := w.ResponseWriter.(interface{ Unwrap() http.ResponseWriter }); ok {
		return inner.Unwrap()
	}
	return w.ResponseWriter
}
