package web

import (
	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/web/respond"
)

// handler answers a request of a caller, who is the zero Caller on open routes. If it
// returns an error, it has written nothing: fail answers in its place.
type handler func(c *gin.Context, by app.Caller) error

// newEngine returns a gin engine that adds nothing of its own to the wire: no
// redirects, no texts, no forwarded addresses. Path parameters arrive as they
// were sent; decode unescapes them once.
func newEngine(around gin.HandlerFunc) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.UseEscapedPath = true
	e.UnescapePathValues = false
	e.ForwardedByClientIP = false
	if err := e.SetTrustedProxies(nil); err != nil {
		panic(err) // gin refuses only addresses that it cannot parse
	}
	e.Use(around)
	e.NoRoute(func(c *gin.Context) {
		fail(c, fault.Errorf(fault.NotFound, "There is no route %s %s; GET /openapi.yaml describes all routes.",
			c.Request.Method, respond.Clip(c.Request.URL.EscapedPath())))
	})
	e.NoMethod(func(c *gin.Context) {
		fail(c, fault.Errorf(fault.MethodNotAllowed, "%s is not allowed here; use %s.",
			c.Request.Method, c.Writer.Header().Get("Allow")))
	})
	return e
}

// callerKey holds the caller in gin's context, for the logs.
const callerKey = "caller"

// codeKey holds the code of a failed request in gin's context.
const codeKey = "code"

// fail answers with err and leaves its code for the audit log.
func fail(c *gin.Context, err error) {
	c.Set(codeKey, string(fault.CodeOf(err)))
	respond.Error(c.Writer, c.Request, err)
}
