package web

import (
	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/web/respond"
)

// handler handles a request of a caller, which is the zero Caller on open routes. If it
// returns an error, it has written nothing, and fail sends the response instead.
type handler func(c *gin.Context, by app.Caller) error

// newEngine returns a gin engine that adds no behavior of its own: no redirects, default
// error messages or forwarded addresses. Path parameters arrive as sent; decode unescapes
// them once.
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
		panic(err) // gin only rejects addresses that it can't parse
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

// callerKey is the key of the caller in gin's context, for the logs.
const callerKey = "caller"

// codeKey is the key of a failed request's code in gin's context.
const codeKey = "code"

// fail sends an error response and stores its code for the audit log.
func fail(c *gin.Context, err error) {
	c.Set(codeKey, string(fault.CodeOf(err)))
	respond.Error(c.Writer, c.Request, err)
}
