package edge

import (
	"io"
	"net/http"

	"github.com/rs/zerolog"

	"molrun/web/respond"
)

// Log calls answer and writes the request to the access log.
func Log(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc) {
	noted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	answer(noted, r)
	logRequest(r, noted.status)
}

// logRequest writes an access log entry.
func logRequest(r *http.Request, status int) {
	zerolog.Ctx(r.Context()).Info().Str("method", respond.Clip(r.Method)).Str("path", respond.Redact(r.URL.Path)).
		Str("remote", Remote(r)).Int("status", status).Msg("request")
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (n *statusWriter) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// ReadFrom implements io.ReaderFrom with the server's writer, which lets the kernel copy
// files.
func (n *statusWriter) ReadFrom(src io.Reader) (int64, error) { return io.Copy(n.ResponseWriter, src) }

// Unwrap gives http.ResponseController access to the connection.
func (n *statusWriter) Unwrap() http.ResponseWriter { return n.ResponseWriter }
