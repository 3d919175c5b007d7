package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"molrun/web/respond"
)

// file is a file to serve.
type file struct {
	contentType string
	content     []byte
	etag        string // without quotes
	zipped      bool   // content is gzipped
	forever     bool   // clients can cache it permanently: its name changes with its content
}

func newFile(contentType string, content []byte) file {
	sum := sha256.Sum256(content)
	return file{contentType: contentType, content: content, etag: hex.EncodeToString(sum[:12])}
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("ETag", `"`+f.etag+`"`)
	if !f.zipped {
		respond.Whole(w, r, f.contentType, f.content)
		return
	}
	h.Set("Vary", "Accept-Encoding")
	if !acceptsGzip(r) {
		f.sendPlain(w, r)
		return
	}
	h.Set("ETag", `"`+f.etag+`-gz"`)
	h.Set("Content-Encoding", "gzip")
	h.Set("Content-Length", strconv.Itoa(len(f.content)))
	respond.Whole(w, r, f.contentType, f.content)
}

// sendPlain responds to a client that does not accept gzip. There are few of these, so
// the content is decompressed while it is sent, and never held in memory as a whole.
func (f file) sendPlain(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if strings.Contains(r.Header.Get("If-None-Match"), h.Get("ETag")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.contentType)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(f.content))
	if err == nil {
		_, err = io.Copy(w, plain) //nolint:gosec // our own file
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client must not consider the file complete
	}
}

// types maps the extensions of built files to content types, because the machine's own
// table may be wrong.
var types = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8",
	".svg": "image/svg+xml", ".json": "application/json", ".txt": "text/plain; charset=utf-8", ".wasm": "application/wasm",
	".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2", ".map": "application/json",
}

func typeOf(name string) string {
	if t, known := types[path.Ext(name)]; known {
		return t
	}
	return "application/octet-stream"
}

// acceptsGzip reports whether the client accepts gzip.
func acceptsGzip(r *http.Request) bool {
	for element := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, parameters, err := mime.ParseMediaType("x/" + strings.TrimSpace(element))
		if err != nil || name != "x/gzip" {
			continue
		}
		q, err := strconv.ParseFloat(parameters["q"], 64)
		return err != nil || q > 0
	}
	return false
}
