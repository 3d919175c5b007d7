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

// Policy says who the client is, how large its headers may be, and which web
// pages may read the answers.
type Policy struct {
	MaxHeader int            // bytes of all headers, 64 KiB if 0
	Trusted   []netip.Prefix // proxies whose X-Forwarded-For is believed
	Origins   []string       // origins of web pages that may use the service
	SignIn    SignIn

	// Strangers is how many requests of one network may be in progress of which the user is
	// not known (yet); 0 is without bound. Behind a trusted proxy, the network is that of the
	// address it names.
	Strangers int
}

var errManyStrangers = fault.Errorf(fault.RateLimited, "Too many requests without an API key are in progress from this address; send more when some are answered.")

// Wrap returns next behind the policy. It passes the ResponseWriter on as it
// is.
func (p Policy) Wrap(next http.Handler) http.Handler {
	if p.MaxHeader == 0 {
		p.MaxHeader = 64 << 10
	}
	signIn := signInBy(p.SignIn)
	strangers := &limit.Budget{Share: int64(p.Strangers), ShareSpent: errManyStrangers}
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
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), strangerKey{}, release)))
		}
	})
}

// strangerKey finds in the context of a request what ends its being counted among those of
// strangers.
type strangerKey struct{}

// headerSize returns about how many bytes the headers had when they were sent.
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
