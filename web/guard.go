package web

import (
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/web/decode"
	"molrun/web/edge"
)

// class determines how a route is guarded and limited.
type class int

const (
	keyed    class = iota // requires an API key
	open                  // requires no key
	querying              // from here on: requires a key and has a rate limit, unless noted
	submitting
	batch // submitting with a large body
	uploading
	sharing   // requires no key, has a rate limit per address; also for signing in
	following // requires a key; open-ended, so it has its own limit
)

// guard admits requests to handlers. It checks the API key before any of the body is
// read, and limits the number of requests in flight. A key's requests count from then on;
// the total counts requests only once their bodies have arrived, so that slow clients
// don't keep others out.
type guard struct {
	accounts *access.Accounts
	trusted  []netip.Prefix
	cookie   edge.Cookie
	// crossOrigin rejects changes requested by pages of other sites.
	crossOrigin *http.CrossOriginProtection
	limits      map[class]*decode.Limits
	answerTime  time.Duration
	inFlight    limit.Budget           // requests whose bodies have arrived
	perKey      limit.Budget           // requests
	perAddress  limit.Budget           // requests without a key
	computing   *limit.Slots           // submissions
	failed      *limit.Rates           // rejected keys by address
	shared      *limit.Rates           // requests for shared results, by address
	rates       map[class]*limit.Rates // requests by key
}

func newGuard(accounts *access.Accounts, o Options) *guard {
	limits := &decode.Limits{URL: o.MaxURL, Body: o.MaxBody, Arrive: o.BodyTime, JSON: o.JSON, Budget: decode.NewBudget(o.MaxBuffered, max(threeQuarters(o.MaxBuffered), o.MaxBatchBody))}
	ofBatch := *limits
	ofBatch.Body, ofBatch.Arrive, ofBatch.Tables = o.MaxBatchBody, o.BatchTime, true
	ofStranger := *limits
	ofStranger.Body = min(o.MaxBody, 16<<10)
	submissions, lists := limit.NewRates(o.Rates.Submit, o.Now), limit.NewRates(o.Rates.List, o.Now)
	return &guard{
		accounts: accounts,
		trusted:  o.TrustedProxies,
		cookie:   edge.Cookie{PublicURL: o.PublicURL},

		crossOrigin: sameOrigin(o.PublicURL),
		limits: map[class]*decode.Limits{
			keyed: limits, open: limits, sharing: &ofStranger, querying: limits, submitting: limits, batch: &ofBatch, uploading: limits, following: limits,
		},
		answerTime: o.AnswerTime,
		inFlight: limit.Budget{
			All:   int64(o.MaxInFlight),
			Spent: fault.Errorf(fault.Unavailable, "The service is busy; send the request again in a few seconds."),
		},
		perKey: limit.Budget{
			Share:      int64(o.MaxInFlightPerKey),
			ShareSpent: fault.Errorf(fault.RateLimited, "This API key has too many requests in progress; wait until some have finished."),
		},
		perAddress: limit.Budget{
			Share:      int64(o.MaxInFlightPerKey),
			ShareSpent: fault.Errorf(fault.RateLimited, "Too many requests from this address are in progress; wait until some have finished."),
		},
		computing: o.Computing,
		failed:    limit.NewRates(o.Rates.Failed, o.Now),
		shared:    limit.NewRates(o.Rates.Shared, o.Now),
		rates: map[class]*limit.Rates{
			submitting: submissions,
			batch:      submissions,
			querying:   lists,
			following:  lists,
			uploading:  limit.NewRates(o.Rates.Upload, o.Now),
		},
	}
}

// sameOrigin returns a protection that trusts the origin of the public address, because a
// proxy can hide it from the service.
func sameOrigin(public string) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if u, err := url.Parse(public); err == nil && u.Host != "" {
		_ = p.AddTrustedOrigin(u.Scheme + "://" + u.Host) // well-formed: it was just parsed
	}
	return p
}

// admit returns the handler of a route with the guard of its class.
func (g *guard) admit(r route) handler {
	of, next, limits := r.class, r.handle, g.limits[r.class]
	return func(c *gin.Context, by app.Caller) (err error) {
		defer limits.Apply(c)(&err)
		limitResponseTime(c, g.answerTime)
		if of == open {
			return next(c, by)
		}
		if of == sharing {
			return g.admitAnonymous(c, next)
		}
		by, err = g.authenticate(c.Request)
		if err != nil {
			return err
		}
		c.Set(callerKey, by)
		if !by.Rights.Has(r.needs) {
			return errForbidden[r.needs]
		}
		if !g.rates[of].Allow(by.KeyID) {
			return fault.Errorf(fault.RateLimited, "This API key sent too many requests of this kind; wait a second and send fewer.")
		}
		if of == following {
			edge.Admitted(c.Request)
			return next(c, by)
		}
		release, err := g.perKey.One(by.KeyID)
		if err != nil {
			return err
		}
		defer release()
		receive(c, of, by)
		edge.Admitted(c.Request)
		if of == submitting {
			return g.handle(c, by, g.inFairShare(next))
		}
		return g.handle(c, by, next)
	}
}

// inFairShare calls next once the user gets a slot by fair share. Batches do not wait for
// slots: they are few, and a long-running one would delay all small submissions.
func (g *guard) inFairShare(next handler) handler {
	return func(c *gin.Context, by app.Caller) error {
		inside, leave, err := g.computing.Enter(c.Request.Context(), by.Organization+"/"+by.Email)
		if err != nil {
			return err
		}
		defer leave()
		c.Request = c.Request.WithContext(inside)
		return next(c, by)
	}
}

// errForbidden maps a missing right to its error.
var errForbidden = map[apikey.Rights]error{
	read:   fault.Errorf(fault.Forbidden, "This API key can't read: it lacks the scope read. Use another key; GET /keys lists yours."),
	submit: fault.Errorf(fault.Forbidden, "This API key can't change anything: that requires the role member or admin and, for a key with scopes, the scope submit. Ask an admin of your organization."),
	admin:  fault.Errorf(fault.Forbidden, "Only admins can do this: it requires the role admin and, for a key with scopes, the scope admin. Ask an admin of your organization."),
}

// handle calls next unless too many requests are in flight.
func (g *guard) handle(c *gin.Context, by app.Caller, next handler) error {
	release, err := g.inFlight.One("")
	if err != nil {
		return err
	}
	defer release()
	return next(c, by)
}

// admitAnonymous admits a request for shared results or to sign in. Its address is limited
// like an API key.
func (g *guard) admitAnonymous(c *gin.Context, next handler) error {
	if g.crossOrigin.Check(c.Request) != nil {
		return errCrossOrigin
	}
	address := edge.Network(c.Request)
	if !edge.Shared(c.Request, g.trusted) && !g.shared.Allow(address) {
		return fault.Errorf(fault.RateLimited, "Too many requests without an API key came from this address; wait a second.")
	}
	release, err := g.perAddress.One(address)
	if err != nil {
		return err
	}
	defer release()
	receive(c, sharing, app.Caller{KeyID: address})
	return g.refused(c.Request, g.handle(c, app.Caller{}, next))
}

// receive reads as much of the body as the handler will need.
func receive(c *gin.Context, of class, by app.Caller) {
	switch {
	case c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead:
	case of == uploading:
		decode.ReceiveStart(c, enoughOfFile)
	default:
		decode.Receive(c, by.KeyID)
	}
}

// authenticate returns the caller of a request.
func (g *guard) authenticate(r *http.Request) (app.Caller, error) {
	by, err := g.identify(r)
	if fault.CodeOf(err) == fault.Unauthorized {
		// The response is the same whatever is wrong with the key.
		err = g.refused(r, fault.Errorf(fault.Unauthorized, "Send a valid API key in x-api-key; an administrator can create one with `molrun key create`."))
	}
	return by, err
}

// refused returns the error for a request that was not authenticated. It limits the rate
// of such requests per address, so that keys can't be guessed at full speed.
func (g *guard) refused(r *http.Request, err error) error {
	if fault.CodeOf(err) == fault.Unauthorized && !edge.Shared(r, g.trusted) && !g.failed.Allow(edge.Network(r)) {
		return fault.Errorf(fault.RateLimited, "Too many requests without a valid API key came from this address; wait a second.")
	}
	return err
}

// identify returns the caller of a request: the owner of the key or, without a key, the
// user signed in by a proxy, or else the user of the session. The proxy takes precedence
// because it knows the current user of the browser, while the cookie may belong to a
// previous one. A guest admitted by a handler of this process needs no key.
func (g *guard) identify(r *http.Request) (app.Caller, error) {
	keys, user, session := r.Header.Values("X-Api-Key"), edge.SignedIn(r), g.cookie.Value(r)
	guest, admitted := edge.GuestOf(r)
	switch {
	case admitted:
		return g.accounts.AsGuest(r.Context(), guest.Organization, guest.Email)
	case len(keys) == 1:
		return g.accounts.Authenticate(r.Context(), keys[0], edge.Address(r))
	case len(keys) > 1 || user == "" && session == "":
		return app.Caller{}, fault.Unauthorized
	// Browsers send these automatically, so pages of other sites must not be able to use
	// them to make changes.
	case g.crossOrigin.Check(r) != nil:
		return app.Caller{}, errCrossOrigin
	case user != "":
		return g.accounts.SignIn(r.Context(), user)
	}
	return g.accounts.AuthenticateSession(r.Context(), session, edge.Address(r))
}

var errCrossOrigin = fault.Errorf(fault.Forbidden, "This request came from a page of another site; only pages of this service can make changes for a signed-in user.")
