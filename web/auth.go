package web

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/fault"
)

// callerKey and limitsKey name what admit leaves in gin's context.
const (
	callerKey = "caller"
	limitsKey = "limits"
)

// admit stands before the handler of every route: it sets the deadlines of
// the exchange, bounds how many are handled at once, and demands an API key,
// all before anything of the body is read.
func (a *API) admit(of class) gin.HandlerFunc {
	max, within := a.options.MaxBody, a.options.BodyTime
	if of == batch {
		max, within = a.options.MaxBatchBody, a.options.BatchTime
	}
	return func(c *gin.Context) {
		setDeadlines(c, within, a.options.AnswerTime)
		l := &limits{url: a.options.MaxURL, json: a.options.JSON, max: max, budget: a.buffered}
		defer l.release()
		c.Set(limitsKey, l)
		if of == open {
			c.Next()
			return
		}
		select {
		case a.inFlight <- struct{}{}:
			defer func() { <-a.inFlight }()
		default:
			fail(c, fault.Errorf(fault.Unavailable, "The service is busy; send the request again in a few seconds."))
			return
		}
		if err := a.authenticate(c, of); err != nil {
			fail(c, err)
			return
		}
		c.Next()
	}
}

// setDeadlines bounds the exchange. The deadline for reading stands only
// while a body is to be read: one that passes later would end the request's
// context. The one for writing is always set anew, since that of the previous
// request on the connection may still stand.
func setDeadlines(c *gin.Context, arrive, leave time.Duration) {
	conn := http.NewResponseController(c.Writer)
	if c.Request.ContentLength != 0 {
		_ = conn.SetReadDeadline(time.Now().Add(arrive)) // a writer without deadlines is a test's
	}
	_ = conn.SetWriteDeadline(time.Now().Add(leave))
}

// authenticate finds the caller and leaves it in c. Failed attempts beyond a
// rate are told to slow down, so that nobody tries keys at full speed.
func (a *API) authenticate(c *gin.Context, of class) error {
	caller, err := a.identify(c.Request)
	if err != nil {
		if fault.CodeOf(err) == fault.Unauthorized && !a.exempt(c.Request) && !a.refused.take(address(c.Request)) {
			return fault.Errorf(fault.RateLimited, "Too many requests without a valid API key came from this address; wait a second.")
		}
		return err
	}
	c.Set(callerKey, caller)
	if rate := a.rates[of]; rate != nil && !rate.take(caller.KeyID) {
		return fault.Errorf(fault.RateLimited, "This API key made too many requests of this kind; wait a second and go on more slowly.")
	}
	return nil
}

// identify gives the caller of a request's key. Whatever is wrong with the
// key, the answer is the same.
func (a *API) identify(r *http.Request) (app.Caller, error) {
	keys := r.Header.Values("X-Api-Key")
	if len(keys) != 1 {
		return app.Caller{}, refusal()
	}
	caller, err := a.svc.Accounts.Authenticate(r.Context(), keys[0])
	if err != nil && fault.CodeOf(err) == fault.Unauthorized {
		return app.Caller{}, refusal()
	}
	return caller, err
}

func refusal() error {
	return fault.Errorf(fault.Unauthorized, "Send a valid API key in x-api-key; an administrator makes one with `molrun key create`.")
}

// caller gives whom admit found.
func caller(c *gin.Context) app.Caller { return c.MustGet(callerKey).(app.Caller) }

// ctx gives the context of the request, with its logger.
func ctx(c *gin.Context) context.Context { return c.Request.Context() }
