package edge

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/limit"
)

// SignIn configures which header of which proxies names the signed-in user. The zero
// value trusts no proxy.
type SignIn struct {
	Header  string
	Proxies []netip.Prefix
}

type userKey struct{}

// SignedIn returns the user signed in by a proxy, or "" if there is none.
func SignedIn(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

// signInBy returns a function that records the user signed in by a proxy. It checks the
// address of the connection, because forwarded headers could be forged. It ignores the
// header from any other address and logs one such request per second.
func signInBy(s SignIn) func(*http.Request) *http.Request {
	if s.Header == "" {
		return func(r *http.Request) *http.Request { return r }
	}
	logged := limit.NewRates(1, time.Now)
	return func(r *http.Request) *http.Request {
		values := r.Header.Values(s.Header)
		if len(values) == 0 || len(values) == 1 && values[0] == "" {
			return r
		}
		from, ok := remoteAddr(r)
		switch {
		case !ok || !contains(s.Proxies, from.WithZone("")):
			warn(r, logged, "the header that signs in users came from an address that is not in sign_in.proxies; it is ignored")
			return r
		case len(values) > 1:
			warn(r, logged, "the proxy sent the header that signs in users several times; it is ignored")
			return r
		}
		return r.WithContext(context.WithValue(r.Context(), userKey{}, values[0]))
	}
}

func warn(r *http.Request, logged *limit.Rates, msg string) {
	if logged.Allow("") {
		zerolog.Ctx(r.Context()).Warn().Str("remote", Remote(r)).Msg(msg)
	}
}
