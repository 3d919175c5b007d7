package web

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/web/edge"
	"molrun/web/redact"
)

// observer records every request of the API: in the access log, the metrics
// and the audit log.
type observer struct {
	metrics *requestMetrics
	audit   *auditor
}

// observe surrounds the handler of every request. It answers panics itself, so
// that they are recorded with their status.
func (o observer) observe(c *gin.Context) {
	start := time.Now()
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler && !c.Writer.Written() { //nolint:errorlint // see edge.AnswerPanic
			edge.AnswerPanic(c.Writer, c.Request, p, false)
			p = nil
		}
		took := time.Since(start)
		o.metrics.add(c, took)
		logAccess(c, took)
		o.audit.add(c, edge.Remote(c.Request))
		if p != nil {
			panic(p)
		}
	}()
	c.Next()
}

// logAccess writes the access log. It leaves out the query string and all
// headers, because they hold secrets.
func logAccess(c *gin.Context, took time.Duration) {
	e := zerolog.Ctx(c.Request.Context()).Info()
	if by, known := c.Get(callerKey); known {
		by := by.(app.Caller)
		e.Str("organization", by.Organization).Str("key", by.KeyID)
	}
	e.Str("method", c.Request.Method).
		Str("path", redact.ForLog(c.Request.URL.Path)).
		Str("remote", edge.Remote(c.Request)).
		Int("status", c.Writer.Status()).
		Int("bytes", max(0, c.Writer.Size())).
		Dur("took", took).
		Msg("request")
}
