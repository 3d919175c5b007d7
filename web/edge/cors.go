package edge

import (
	"net/http"
	"slices"
	"time"
)

// What web pages of allowed origins can send and read. A page sends the key in x-api-key
// itself, so credentials added by the browser are not allowed.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "X-Api-Key, Content-Type, Range, If-Range, If-None-Match, Last-Event-ID, " +
		"Content-Digest, Content-Range, Repr-Digest, Upload-Complete, Upload-Draft-Interop-Version, Upload-Length, Upload-Offset"
	corsExposed = "Accept-Ranges, Allow, Content-Disposition, Content-Length, Content-Range, ETag, Location, Range, Repr-Digest, Retry-After, " +
		"Upload-Complete, Upload-Length, Upload-Limit, Upload-Offset, X-Event-ID, X-Incomplete, X-Log-Size, X-Request-Id"
	corsMaxAge = "600"
)

// allowOrigin lets pages of the given origins read the response. It reports whether the
// request was a preflight, which it has answered.
func allowOrigin(w http.ResponseWriter, r *http.Request, allowed []string) (answered bool) {
	if len(allowed) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origins := r.Header.Values("Origin")
	if len(origins) != 1 || !slices.Contains(allowed, origins[0]) {
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
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)) // only the writers in tests lack deadlines
	w.WriteHeader(http.StatusNoContent)
	return true
}
