package web

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
)

const requestIDHeader = "X-Request-Id"

// Outer joins the API and the links to files. It gives every request an id
// and a logger, and turns a panic into an answer. Requests below /blobs/ get
// the server's own writer, so that files can go from disk to network inside
// the kernel.
func Outer(api, blobs http.Handler, log zerolog.Logger) http.Handler {
	return named(log, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.EscapedPath(), "/blobs/") {
			blobs.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// named gives each request an id of our own making, whatever it brought along,
// and a logger that writes the id.
func named(log zerolog.Logger, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header().Set(requestIDHeader, id)
		l := log.With().Str("request", id).Logger()
		r = r.WithContext(l.WithContext(r.Context()))
		defer func() {
			if p := recover(); p != nil {
				answerPanic(w, r, p, w.Header().Get("Content-Type") != "")
			}
		}()
		next(w, r)
	})
}

// answerPanic ends a request whose handler panicked. Where the answer had
// begun, the connection is cut, so that a part is not taken for the whole.
func answerPanic(w http.ResponseWriter, r *http.Request, p any, begun bool) {
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it alike
		panic(p)
	}
	zerolog.Ctx(r.Context()).Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("handler panicked")
	if begun {
		panic(http.ErrAbortHandler)
	}
	WriteError(w, r, errors.New("panic"))
}

// access stands around every request of the API: it answers panics, writes
// the line of the access log and counts. Neither the query string nor any
// header is logged, as both hold secrets.
func (a *API) access(c *gin.Context) {
	start := time.Now()
	defer func() {
		p := recover()
		if p != nil {
			c.Abort() // else gin would go on with the handler after the one that panicked
		}
		if p != nil && p != http.ErrAbortHandler && !c.Writer.Written() { //nolint:errorlint // see answerPanic
			answerPanic(c.Writer, c.Request, p, false)
			p = nil
		}
		took := time.Since(start)
		a.observed.request(c, took)
		logAccess(c, took)
		a.audit.request(c, remote(c.Request))
		if p != nil {
			panic(p)
		}
	}()
	c.Next()
}

func logAccess(c *gin.Context, took time.Duration) {
	e := logger(c).Info()
	if by, known := c.Get(callerKey); known {
		by := by.(app.Caller)
		e.Str("organization", by.Organization).Str("key", by.KeyID)
	}
	e.Str("method", c.Request.Method).
		Str("path", redact(cut(c.Request.URL.Path))).
		Str("remote", remote(c.Request)).
		Int("status", c.Writer.Status()).
		Int("bytes", max(0, c.Writer.Size())).
		Dur("took", took).
		Msg("request")
}
