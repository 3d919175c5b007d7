package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/fault"
)

// Edge is what stands before the API and the links alike: who the client is,
// how much it may send before anything is known of it, and which web pages
// may read the answers.
type Edge struct {
	MaxHeader int            // bytes of a header, 64 KiB
	Trusted   []netip.Prefix // proxies whose X-Forwarded-For is believed
	Origins   []string       // web pages that may use what lies behind
}

// Before gives next behind the edge. It hands on the writer as it is.
func (e Edge) Before(next http.Handler) http.Handler {
	e.MaxHeader = or(e.MaxHeader, 64<<10)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = e.client(r)
		switch {
		case headerSize(r) > e.MaxHeader:
			e.refuse(w, r)
		case e.allow(w, r):
			e.log(r, http.StatusNoContent)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// client gives a request that comes from the client itself: behind proxies
// that are trusted it is the last address that none of them has.
func (e Edge) client(r *http.Request) *http.Request {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !e.trusts(from.Addr().Unmap()) {
		return r
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		address, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return r // what stands before it was not written by a proxy either
		}
		if address = address.Unmap().WithZone(""); !e.trusts(address) {
			known := r.WithContext(r.Context()) // a copy: the request is not ours
			known.RemoteAddr = netip.AddrPortFrom(address, 0).String()
			return known
		}
	}
	return r
}

func (e Edge) trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(e.Trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// headerSize gives the bytes of a header as it was sent, nearly.
func headerSize(r *http.Request) int {
	size := len(r.Host) + len("Host: \r\n")
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	return size
}

// refuse answers a header that is too large.
func (e Edge) refuse(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	WriteError(w, r, headerTooLarge())
	e.log(r, http.StatusUnprocessableEntity)
}

func headerTooLarge() error {
	return fault.List(fault.Field{
		Loc: []any{"header"}, Type: "value", Msg: "send a smaller header; cookies are not needed here",
	})
}

// log writes the line of a request that goes no further.
func (e Edge) log(r *http.Request, status int) {
	zerolog.Ctx(r.Context()).Info().Str("method", cut(r.Method)).Str("path", redact(cut(r.URL.Path))).
		Str("remote", remote(r)).Int("status", status).Msg("request")
}

// What a web page may send and read. The key is sent by the page itself, in
// x-api-key: the browser adds no credentials, so none are allowed.
const (
	corsMethods = "GET, HEAD, POST, PUT, DELETE"
	corsHeaders = "X-Api-Key, Content-Type, Range, If-Range, If-None-Match"
	corsExposed = "Accept-Ranges, Allow, Content-Disposition, Content-Length, Content-Range, ETag, Retry-After, X-Log-Size, X-Request-Id"
	corsMaxAge  = "600"
)

// allow lets pages of the configured origins read the answer. It reports
// whether the request was only a browser's question and is answered.
func (e Edge) allow(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(e.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origins := r.Header.Values("Origin")
	if len(origins) != 1 || !slices.Contains(e.Origins, origins[0]) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)) // a writer without deadlines is a test's
	w.WriteHeader(http.StatusNoContent)
	return true
}
