package web

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/fault"
	"molrun/web/decode"
	"molrun/web/edge"
)

// class says how a route is guarded and limited.
type class int

const (
	keyed   class = iota // needs an API key
	open                 // needs none
	listing              // the others need one, and have a rate
	submitting
	batch // submitting, with a large body
	uploading
)

// guard admits requests to handlers. It bounds how many are in flight, and
// demands an API key before anything of the body is read.
type guard struct {
	accounts   *app.Accounts
	trusted    []netip.Prefix
	limits     map[class]*decode.Limits
	answerTime time.Duration
	inFlight   chan struct{}
	failed     *edge.RateLimiter           // refused keys by address
	rates      map[class]*edge.RateLimiter // requests by key
}

func newGuard(accounts *app.Accounts, o Options) *guard {
	limits := &decode.Limits{URL: o.MaxURL, Body: o.MaxBody, Arrive: o.BodyTime, JSON: o.JSON, Budget: decode.NewBudget(o.MaxBuffered)}
	ofBatch := *limits
	ofBatch.Body, ofBatch.Arrive = o.MaxBatchBody, o.BatchTime
	submissions := edge.NewRateLimiter(o.Rates.Submit, o.Now)
	return &guard{
		accounts: accounts,
		trusted:  o.TrustedProxies,
		limits: map[class]*decode.Limits{
			keyed: limits, open: limits, listing: limits, submitting: limits, batch: &ofBatch, uploading: limits,
		},
		answerTime: o.AnswerTime,
		inFlight:   make(chan struct{}, o.MaxInFlight),
		failed:     edge.NewRateLimiter(o.Rates.Failed, o.Now),
		rates: map[class]*edge.RateLimiter{
			submitting: submissions,
			batch:      submissions,
			listing:    edge.NewRateLimiter(o.Rates.List, o.Now),
			uploading:  edge.NewRateLimiter(o.Rates.Upload, o.Now),
		},
	}
}

// admit returns next behind the guard of its class.
func (g *guard) admit(of class, next handler) handler {
	limits := g.limits[of]
	return func(c *gin.Context, by app.Caller) error {
		defer limits.Apply(c)()
		setWriteDeadline(c, g.answerTime)
		if of == open {
			return next(c, by)
		}
		select {
		case g.inFlight <- struct{}{}:
			defer func() { <-g.inFlight }()
		default:
			return fault.Errorf(fault.Unavailable, "The service is busy; send the request again in a few seconds.")
		}
		by, err := g.authenticate(c.Request)
		if err != nil {
			return err
		}
		c.Set(callerKey, by)
		if !g.rates[of].Allow(by.KeyID) {
			return fault.Errorf(fault.RateLimited, "This API key made too many requests of this kind; wait a second and send fewer.")
		}
		return next(c, by)
	}
}

// setWriteDeadline bounds the time to send an answer. It is set for every
// request, because that of the previous one on the connection may still stand.
func setWriteDeadline(c *gin.Context, within time.Duration) {
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(within)) // only writers of tests have none
}

// authenticate returns the caller of a request's key. An address with too many
// refused keys is slowed down, so that nobody tries keys at full speed.
func (g *guard) authenticate(r *http.Request) (app.Caller, error) {
	by, err := g.identify(r)
	if err == nil || fault.CodeOf(err) != fault.Unauthorized {
		return by, err
	}
	if !edge.Shared(r, g.trusted) && !g.failed.Allow(edge.Network(r)) {
		return by, fault.Errorf(fault.RateLimited, "Too many requests without a valid API key came from this address; wait a second.")
	}
	// Whatever is wrong with the key, the answer is the same.
	return by, fault.Errorf(fault.Unauthorized, "Send a valid API key in x-api-key; an administrator makes one with `molrun key create`.")
}

func (g *guard) identify(r *http.Request) (app.Caller, error) {
	keys := r.Header.Values("X-Api-Key")
	if len(keys) != 1 {
		return app.Caller{}, fault.Unauthorized
	}
	return g.accounts.Authenticate(r.Context(), keys[0])
}

// callerKey holds the caller in gin's context, for the logs.
const callerKey = "caller"
