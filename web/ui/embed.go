// Package ui serves the web application, which is part of the program. Node builds it
// (make ui); the built files are in git, so that nobody else needs Node.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"molrun/app/base/fault"
	"molrun/web/edge"
	"molrun/web/respond"
)

//go:embed all:dist fallback.html
var built embed.FS

// Prefix begins the paths of the application.
const Prefix = "/ui/"

const (
	startPage = "index.html"
	assets    = "assets/" // their names change with their content
)

// policy is on every answer: nothing of another origin runs or is loaded. No other page
// shows ours in a frame, but for those that are made for it.
const (
	policy = "default-src 'none'; base-uri 'self'; object-src 'none'; form-action 'self'; " +
		"script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; frame-ancestors "
	nowhere, anywhere = "'none'", "*"
)

// embedded begins the pages that show a shared result within another page. They have
// nothing to click that changes anything, and know nothing of who is signed in.
const embedded = Prefix + "embed/"

// answerTime bounds how long an answer takes to leave.
const answerTime = 2 * time.Minute

// Before returns a handler that serves the application and leaves all else to api.
// A browser that asks for "/" is sent to the application; whoever else asks gets the
// API's answer.
func Before(api http.Handler) http.Handler { return before(built, api) }

func before(built fs.FS, api http.Handler) http.Handler {
	s := newSite(built)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
		case strings.HasPrefix(r.URL.Path, Prefix):
			s.ServeHTTP(w, r)
		case reads && (r.URL.Path == "/ui" || r.URL.Path == "/" && wantsPage(r)):
			// Relative, since a proxy may have cut off the beginning of the path.
			w.Header().Set("Location", "ui/")
			w.Header().Set("Vary", "Accept")
			respond.Body(w, http.StatusFound, "text/plain; charset=utf-8", nil)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// wantsPage reports whether a browser asks.
func wantsPage(r *http.Request) bool {
	return strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// site is the files of the application by name.
type site struct {
	files map[string]file
	// The start page, without the address that all its relative addresses begin with.
	head, tail []byte
	etag       string
}

// file is a file as it is stored.
type file struct {
	content []byte
	zipped  bool
	etag    string // without quotes
}

// newSite reads the files. They are part of the program, so that one that can't be read
// is a mistake in it.
func newSite(built fs.FS) *site {
	s := &site{files: map[string]file{}}
	must(fs.WalkDir(built, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ".gitkeep" {
			return err
		}
		content, err := fs.ReadFile(built, name)
		name, zipped := strings.CutSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
		s.files[name] = file{content, zipped, digest(content)}
		return err
	}))
	page, found := s.files[startPage]
	if !found {
		content, err := fs.ReadFile(built, "fallback.html")
		must(err)
		page = file{content: content, etag: digest(content)}
	}
	delete(s.files, startPage)
	s.head, s.tail = splitAtBase(page.content)
	s.etag = page.etag
	return s
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:12])
}

// splitAtBase cuts the address out of <base href="./">.
func splitAtBase(page []byte) (head, tail []byte) {
	const before = `<base href="`
	at := bytes.Index(page, []byte(before))
	if at < 0 {
		panic("the start page has no <base href>") // a mistake in the program
	}
	at += len(before)
	return page[:at], page[at+bytes.IndexByte(page[at:], '"'):]
}

// ServeHTTP implements http.Handler. What is no file is a page of the application, which
// looks at the address itself.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // only writers of tests have none
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if strings.HasPrefix(r.URL.Path, embedded) {
		h.Set("Content-Security-Policy", policy+anywhere)
	} else {
		h.Set("Content-Security-Policy", policy+nowhere)
		h.Set("X-Frame-Options", "DENY")
	}
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	edge.Log(w, r, s.answer)
}

func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	f, found := s.files[name]
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		respond.Error(w, r, fault.Errorf(fault.MethodNotAllowed, "%s is not allowed here; use GET, HEAD.", respond.Clip(r.Method)))
	case found:
		f.serve(w, r, name)
	case strings.HasPrefix(name, assets):
		respond.Error(w, r, fault.Errorf(fault.NotFound, "The application has no such file; load the page again."))
	default:
		s.serveStart(w, r)
	}
}

// serveStart answers with the start page. Its relative addresses begin where the path of
// the application does, as seen from the page: that holds under any path of a proxy.
func (s *site) serveStart(w http.ResponseWriter, r *http.Request) {
	base := "./"
	if depth := strings.Count(r.URL.EscapedPath(), "/") - strings.Count(Prefix, "/"); depth > 0 {
		base = strings.Repeat("../", depth)
	}
	page := make([]byte, 0, len(s.head)+len(base)+len(s.tail))
	page = append(append(append(page, s.head...), base...), s.tail...)
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+s.etag+"-"+strconv.Itoa(len(base))+`"`)
	respond.Whole(w, r, "text/html; charset=utf-8", page)
}

func (f file) serve(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, assets) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if !f.zipped {
		h.Set("ETag", `"`+f.etag+`"`)
		respond.Whole(w, r, typeOf(name), f.content)
		return
	}
	h.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		h.Set("ETag", `"`+f.etag+`-gz"`)
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(f.content)))
		respond.Whole(w, r, typeOf(name), f.content)
		return
	}
	h.Set("ETag", `"`+f.etag+`"`)
	f.sendPlain(w, r, typeOf(name))
}

// sendPlain answers a client that can't read gzip. Few can't, so what they get is unzipped
// as it is sent, and never in memory as a whole.
func (f file) sendPlain(w http.ResponseWriter, r *http.Request, contentType string) {
	h := w.Header()
	if strings.Contains(r.Header.Get("If-None-Match"), h.Get("ETag")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(f.content))
	if err == nil {
		_, err = io.Copy(w, plain) //nolint:gosec // our own file
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
}

// types are those of the files that builds make; the machine's own table may be wrong.
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

// acceptsGzip reports whether the client can read gzip.
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
