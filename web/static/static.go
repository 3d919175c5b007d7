// Package static serves the embedded files that need no API key: the web application, the
// documentation, and the client programs, so that users need no other source for them.
package static

import (
	"io/fs"
	"net/http"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/web/edge"
	"molrun/web/respond"
	"molrun/web/ui"
)

// Path prefixes of the kinds of files.
const (
	ApplicationPrefix = "/ui/"
	docsPrefix        = "/docs/"
	clientPrefix      = "/client/"
)

// answerTime limits the time to send a response.
const answerTime = 2 * time.Minute

// Options configure the clients page.
type Options struct {
	Version string
	// Address returns the base URL at which clients reach the service.
	Address func(*http.Request) (string, error)
	Sender  Sender
}

// Sender responds with an open file.
type Sender interface {
	SendDownload(w http.ResponseWriter, r *http.Request, f app.Download) error
}

// Before returns a handler that serves the files and passes all other requests to api. It
// redirects a browser from "/" to the application; other clients get the API's response.
func Before(api http.Handler, o Options) http.Handler { return before(ui.Built, api, o) }

func before(built fs.FS, api http.Handler, o Options) http.Handler {
	a, c := newApplication(built), newClients(o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, embedded):
			serve(w, r, applicationPolicy+anywhere, a.answer)
		case strings.HasPrefix(path, ApplicationPrefix):
			serve(w, r, applicationPolicy+nowhere, a.answer)
		case strings.HasPrefix(path, docsPrefix):
			serve(w, r, pagePolicy, answerDocs)
		case strings.HasPrefix(path, clientPrefix):
			serve(w, r, pagePolicy, c.answer)
		case !isRead(r):
			api.ServeHTTP(w, r)
		case path+"/" == ApplicationPrefix, path == "/" && wantsPage(r):
			w.Header().Set("Vary", "Accept")
			redirect(w, "ui/")
		case path+"/" == docsPrefix, path+"/" == clientPrefix:
			redirect(w, path[1:]+"/")
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// isRead reports whether a request is a GET or HEAD.
func isRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// wantsPage reports whether the client is a browser that expects a page.
func wantsPage(r *http.Request) bool {
	return strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// redirect redirects to a relative URL, because a proxy may have stripped a prefix of the
// path.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	respond.Body(w, http.StatusFound, "text/plain; charset=utf-8", nil)
}

// serve responds with the output of answer under a content security policy, and logs the
// request. An error becomes an API error response.
func serve(w http.ResponseWriter, r *http.Request, policy string, answer func(http.ResponseWriter, *http.Request) error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // only the writers in tests lack deadlines
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	if !strings.HasPrefix(r.URL.Path, embedded) {
		h.Set("X-Frame-Options", "DENY")
	}
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	edge.Log(w, r, func(w http.ResponseWriter, r *http.Request) {
		var err error
		if isRead(r) {
			err = answer(w, r)
		} else {
			h.Set("Allow", "GET, HEAD")
			err = fault.Errorf(fault.MethodNotAllowed, "%s is not allowed here; use GET, HEAD.", respond.Clip(r.Method))
		}
		if err != nil {
			respond.Error(w, r, err)
		}
	})
}
