package edge

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/rs/zerolog"

	"molrun/web/respond"
)

// Trace gives every request an ID and a logger that includes it, and converts a panic in
// next to an error response. It ignores an ID sent by the client.
func Trace(log zerolog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header().Set(respond.RequestID, id)
		l := log.With().Str("request", id).Logger()
		r = r.WithContext(l.WithContext(r.Context()))
		defer func() {
			if p := recover(); p != nil {
				AnswerPanic(w, r, p, w.Header().Get("Content-Type") != "")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// Mount is Trace for a handler of another API. Its responses are not cached, and browsers
// do not guess their type.
func Mount(log zerolog.Logger, next http.Handler) http.Handler {
	return Trace(log, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	}))
}

// AnswerPanic responds to a request whose handler panicked with p. If the response has
// begun, it closes the connection instead, so that the client can tell that the response
// is incomplete.
func AnswerPanic(w http.ResponseWriter, r *http.Request, p any, begun bool) {
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this
		panic(p)
	}
	zerolog.Ctx(r.Context()).Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("handler panicked")
	if begun {
		panic(http.ErrAbortHandler)
	}
	respond.Error(w, r, errors.New("panic"))
}
