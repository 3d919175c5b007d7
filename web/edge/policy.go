package edge

import (
	"context"
	"net/http"
	"net/netip"
	"sync"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/web/respond"
)

// Policy determines a request's client, limits its headers, and decides which web pages
// can read the response.
type Policy struct {
	MaxHeader int            // total bytes of the headers; 0 means 64 KiB
	Trusted   []netip.Prefix // proxies whose X-Forwarded-For is trusted
	Origins   []string       // origins of web pages that can use the service
	SignIn    SignIn

	// MaxAnonymous is the maximum number of concurrent requests from one network whose user
	// is not known (yet); 0 means no limit. Behind a trusted proxy, the network is that
	// of the forwarded address.
	MaxAnonymous int
}

var errTooManyAnonymous = fault.Errorf(fault.RateLimited, "Too many requests without an API key are in progress from this address; wait until some have finished.")

// Wrap applies the policy to requests for next. It passes the ResponseWriter on
// unchanged.
func (p Policy) Wrap(next http.Handler) http.Handler {
	if p.MaxHeader == 0 {
		p.MaxHeader = 64 << 10
	}
	signIn := signInBy(p.SignIn)
	strangers := &limit.Budget{Share: int64(p.MaxAnonymous), ShareSpent: errTooManyAnonymous}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = withClientAddress(signIn(r), p.Trusted)
		switch {
		case headerSize(r) > p.MaxHeader:
			w.Header().Set("Connection", "close")
			respond.Error(w, r, headerTooLarge())
			logRequest(r, http.StatusUnprocessableEntity)
		case allowOrigin(w, r, p.Origins):
			logRequest(r, http.StatusNoContent)
		default:
			release, err := strangers.One(Network(r))
			if err != nil {
				respond.Error(w, r, err)
				logRequest(r, http.StatusTooManyRequests)
				return
			}
			release = sync.OnceFunc(release)
			defer release()
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), anonymousKey{}, release)))
		}
	})
}

// anonymousKey is the context key of the function that stops counting a request as
// anonymous.
type anonymousKey struct{}

// headerSize returns the approximate size in bytes of the headers as sent.
func headerSize(r *http.Request) int {
	size := len(r.Host) + len("Host: \r\n")
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	return size
}

func headerTooLarge() error {
	return fault.List(fault.Field{
		Loc: []any{"header"}, Type: "value", Msg: "send a smaller header; cookies are not needed here",
	})
}
