package edge

import (
	"net/http"
	"net/netip"

	"molrun/app/base/fault"
	"molrun/web/respond"
)

// Policy says who the client is, how large its headers may be, and which web
// pages may read the answers.
type Policy struct {
	MaxHeader int            // bytes of all headers, 64 KiB if 0
	Trusted   []netip.Prefix // proxies whose X-Forwarded-For is believed
	Origins   []string       // origins of web pages that may use the service
	SignIn    SignIn
}

// Wrap returns next behind the policy. It passes the ResponseWriter on as it
// is.
func (p Policy) Wrap(next http.Handler) http.Handler {
	if p.MaxHeader == 0 {
		p.MaxHeader = 64 << 10
	}
	signIn := signInBy(p.SignIn)
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
			next.ServeHTTP(w, r)
		}
	})
}

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
