// Package page is the frame of the pages that need no script: their look, and what a browser
// may do on them.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"time"

	"molrun/web/edge"
	"molrun/web/respond"
)

//go:embed page.html
var layout string

//go:embed page.css
var style string

var frame = template.Must(template.New("page").Parse(layout))

// policy is on every answer: a page has its own style and nothing else.
var policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:; style-src 'sha256-" + Digest(style) + "'"

// answerTime bounds how long an answer takes to leave.
const answerTime = 2 * time.Minute

// Digest names a style as a policy does.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// HTML returns a page with this body, which is trusted.
func HTML(title string, body template.HTML) ([]byte, error) {
	var b bytes.Buffer
	err := frame.Execute(&b, struct {
		Title string
		Style template.CSS
		Body  template.HTML
	}{title, template.CSS(style), body})
	return b.Bytes(), err
}

// Reads reports whether a request changes nothing.
func Reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// Redirect sends to a relative address, since a proxy may have cut off the beginning of
// the path.
func Redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	respond.Body(w, http.StatusFound, "text/plain; charset=utf-8", nil)
}

// Serve answers with what a function writes, under the policy, and logs the request. An
// error becomes the API's.
func Serve(w http.ResponseWriter, r *http.Request, answer func(http.ResponseWriter, *http.Request) error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // only writers of tests have none
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	edge.Log(w, r, func(w http.ResponseWriter, r *http.Request) {
		if err := answer(w, r); err != nil {
			respond.Error(w, r, err)
		}
	})
}
