package web

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/access"
	"molrun/app/fault"
	"molrun/web/decode"
	"molrun/web/edge"
)

// class says how a route is guarded and limited.
type class int

const (
	keyed    class = iota // needs an API key
	open                  // needs none
	querying              // the others need one, and have a rate
	submitting
	batch // submitting, with a large body
	uploading
	following // needs one; lasts as long as the client likes, so it has a bound of its own
)

// guard admits requests to handlers. It demands an API key before anything of the
// body is read, and bounds how many requests are in flight: those of a key from
// then on, all together only once their bodies have arrived, so that slow clients
// don't keep others out.
type guard struct {
	accounts   *access.Accounts
	trusted    []netip.Prefix
	limits     map[class]*decode.Limits
	answerTime time.Duration
	inFlight   chan struct{}
	perKey     *edge.Shares
	failed     *edge.RateLimiter           // refused keys by address
	rates      map[class]*edge.RateLimiter // requests by key
}

func newGuard(accounts *access.Accounts, o Options) *guard {
	limits := &decode.Limits{URL: o.MaxURL, Body: o.MaxBody, Arrive: o.BodyTime, JSON: o.JSON, Budget: decode.NewBudget(o.MaxBuffered, max(threeQuarters(o.MaxBuffered), o.MaxBatchBody))}
	ofBatch := *limits
	ofBatch.Body, ofBatch.Arrive, ofBatch.Tables = o.MaxBatchBody, o.BatchTime, true
	submissions, lists := edge.NewRateLimiter(o.Rates.Submit, o.Now), edge.NewRateLimiter(o.Rates.List, o.Now)
	return &guard{
		accounts: accounts,
		trusted:  o.TrustedProxies,
		limits: map[class]*decode.Limits{
			keyed: limits, open: limits, querying: limits, submitting: limits, batch: &ofBatch, uploading: limits, following: limits,
		},
		answerTime: o.AnswerTime,
		inFlight:   make(chan struct{}, o.MaxInFlight),
		perKey:     edge.NewShares(o.MaxInFlightPerKey),
		failed:     edge.NewRateLimiter(o.Rates.Failed, o.Now),
		rates: map[class]*edge.RateLimiter{
			submitting: submissions,
			batch:      submissions,
			querying:   lists,
			following:  lists,
			uploading:  edge.NewRateLimiter(o.Rates.Upload, o.Now),
		},
	}
}

// admit returns next behind the guard of its class.
func (g *guard) admit(of class, next handler) handler {
	limits := g.limits[of]
	return func(c *gin.Context, by app.Caller) error {
		defer limits.Apply(c)()
		limitAnswer(c, g.answerTime)
		if of == open {
			return next(c, by)
		}
		by, err := g.authenticate(c.Request)
		if err != nil {
			return err
		}
		c.Set(callerKey, by)
		if !g.rates[of].Allow(by.KeyID) {
			return fault.Errorf(fault.RateLimited, "This API key made too many requests of this kind; wait a second and send fewer.")
		}
		if of == following {
			return next(c, by)
		}
		release, ok := g.perKey.Take(by.KeyID)
		if !ok {
			return fault.Errorf(fault.RateLimited, "This API key has too many requests in progress; send more when some are answered.")
		}
		defer release()
		receive(c, of, by)
		select {
		case g.inFlight <- struct{}{}:
			defer func() { <-g.inFlight }()
		default:
			return fault.Errorf(fault.Unavailable, "The service is busy; send the request again in a few seconds.")
		}
		return next(c, by)
	}
}

// receive reads what the handler will read of the body.
func receive(c *gin.Context, of class, by app.Caller) {
	switch {
	case c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead:
	case of == uploading:
		decode.ReceiveStart(c, enoughOfFile)
	default:
		decode.Receive(c, by.KeyID)
	}
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
