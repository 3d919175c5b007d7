package edge

import (
	"io"
	"net/http"

	"github.com/rs/zerolog"

	"molrun/web/respond"
)

// Log answers a request and writes its line of the access log.
func Log(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc) {
	noted := &noting{ResponseWriter: w, status: http.StatusOK}
	answer(noted, r)
	logRequest(r, noted.status)
}

// logRequest writes the line of the access log of a request that goes no further.
func logRequest(r *http.Request, status int) {
	zerolog.Ctx(r.Context()).Info().Str("method", respond.Clip(r.Method)).Str("path", respond.Redact(r.URL.Path)).
		Str("remote", Remote(r)).Int("status", status).Msg("request")
}

// noting notes the status of an answer.
type noting struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (n *noting) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// ReadFrom implements io.ReaderFrom with the server's own, by which the kernel copies
// files.
func (n *noting) ReadFrom(src io.Reader) (int64, error) { return io.Copy(n.ResponseWriter, src) }

// Unwrap lets http.ResponseController find the connection.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }
