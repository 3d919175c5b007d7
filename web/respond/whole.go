package respond

import (
	"bytes"
	"net/http"
	"time"
)

// Whole responds to a GET or HEAD with a small file in full, or with 304 if the client's
// ETag matches. It does not serve ranges: they are useless for content that is cached or
// verified as a whole.
func Whole(w http.ResponseWriter, r *http.Request, contentType string, content []byte) {
	w.Header().Set("Content-Type", contentType)
	whole := *r
	whole.Header = r.Header.Clone()
	whole.Header.Del("Range")
	http.ServeContent(noRanges{w}, &whole, "", time.Time{}, bytes.NewReader(content))
}

// noRanges is a ResponseWriter that does not advertise ranges.
type noRanges struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (n noRanges) WriteHeader(status int) {
	n.Header().Del("Accept-Ranges")
	n.ResponseWriter.WriteHeader(status)
}
