package respond

import (
	"bytes"
	"net/http"
	"time"
)

// Whole answers a GET or HEAD with a small file, whole, or 304 if the client has it by
// its ETag. Parts are not served: what is cached or checked as a whole has no use for them.
func Whole(w http.ResponseWriter, r *http.Request, contentType string, content []byte) {
	w.Header().Set("Content-Type", contentType)
	whole := *r
	whole.Header = r.Header.Clone()
	whole.Header.Del("Range")
	http.ServeContent(noRanges{w}, &whole, "", time.Time{}, bytes.NewReader(content))
}

// noRanges says that no parts are served.
type noRanges struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (n noRanges) WriteHeader(status int) {
	n.Header().Del("Accept-Ranges")
	n.ResponseWriter.WriteHeader(status)
}
