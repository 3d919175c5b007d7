package edge

import (
	"bytes"
	"fmt"
	"net/http"
)

// recorder buffers a small response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	under  http.ResponseWriter // for access to the connection; can be nil
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.under }

// bytes returns the response in HTTP/1.1 format.
func (w *recorder) bytes() []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status))
	_ = w.header.Write(&text) // writing to a buffer can't fail
	text.WriteString("\r\n")
	text.Write(w.body.Bytes())
	return text.Bytes()
}
