// Package msa is the API in the words of the ColabFold MSA server: a mount at /msa/ that
// ColabFold, Boltz, Chai-1 and Protenix use unchanged as their alignment server. It holds no
// rule: a ticket is a job of the type msa, named after its query, and each request becomes
// requests to the API in the same process. web/docs/msa.md says what clients need.
package msa

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/limit"
	"molrun/app/client"
	"molrun/web/edge"
)

// Path begins all paths of the mount.
const Path = "/msa/"

// downloadPath begins those of downloads.
const downloadPath = Path + "result/download/"

// Options are what the mount needs besides the API.
type Options struct {
	Log       zerolog.Logger
	MaxBody   int64         // bytes of a query
	Arrive    time.Duration // how long it may take to arrive
	Stall     time.Duration // how long a download may stall
	Databases func() string // identifies the databases; other ones make other tickets
	Cores     int           // of a search; 0: as many as the type takes

	Trusted      []netip.Prefix // proxies whose X-Forwarded-For is trusted
	Networks     []netip.Prefix // of clients without a key
	Organization string         // of their jobs
}

// guestEmail is the user of clients without a key.
const guestEmail = "msa@localhost"

// mount translates requests.
type mount struct {
	api        http.Handler
	options    Options
	reading    *limit.Slots // queries that are read at a time
	submitting *limit.Slots // one submission of a query at a time
}

// Handler returns the mount over the API.
func Handler(api http.Handler, o Options) http.Handler {
	m := &mount{api: api, options: o, reading: &limit.Slots{All: 8, Each: 4}, submitting: &limit.Slots{Each: 1}}
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*call) error{
		"POST ticket/msa":              (*call).submitMSA,
		"POST ticket/pair":             (*call).submitPair,
		"GET ticket/{ticket}":          (*call).ticket,
		"GET result/download/{ticket}": (*call).download,
		"GET template/{list}":          (*call).templates,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+Path+path, m.admit(handle))
	}
	mux.HandleFunc(Path, m.admit(func(*call) error {
		return refuse(http.StatusNotFound, "This alignment server has no such path. It answers POST ticket/msa and ticket/pair, GET ticket/ID, result/download/ID and template/LIST.")
	}))
	return edge.Mount(o.Log, mux)
}

// call is a request of a caller who is known.
type call struct {
	*mount
	w   http.ResponseWriter
	r   *http.Request
	api *client.Client

	begun bool // the answer has begun
}

func (c *call) ctx() context.Context { return c.r.Context() }

// admit asks the API who calls before a query is read.
func (m *mount) admit(handle func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r = m.identified(r)
		c := &call{mount: m, w: w, r: r, api: edge.InProcessClient(m.api, r)}
		_, err := c.api.Get(r.Context(), nil, "session")
		if err == nil {
			err = handle(c)
		}
		if err != nil {
			c.fail(err)
		}
	}
}

// identified returns the request with its caller: the key in x-api-key, one sent as user or
// password, which is all that some clients can send, or a guest.
func (m *mount) identified(r *http.Request) *http.Request {
	if r.Header.Get("x-api-key") != "" {
		return r
	}
	user, password, _ := r.BasicAuth()
	for _, word := range []string{password, user} {
		if strings.HasPrefix(word, "molrun_") { // Protenix always sends example_user
			r = r.Clone(r.Context())
			r.Header.Set("x-api-key", word)
			return r
		}
	}
	// A browser in the network sends what any page asks it to.
	isBrowser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if !isBrowser && edge.ClientIn(m.options.Networks, r, m.options.Trusted) {
		return edge.AsGuest(r, edge.Guest{Organization: m.options.Organization, Email: guestEmail})
	}
	return r
}

// answer is what clients read of a ticket.
type answer struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"` // for people
}

func (c *call) send(status int, a answer) error {
	w := c.begin("application/json", status)
	return json.NewEncoder(w).Encode(a)
}

// begin begins an answer, which may then take as long as it goes on.
func (c *call) begin(contentType string, status int) io.Writer {
	c.begun = true
	c.w.Header().Set("Content-Type", contentType)
	w := &paced{c.w, http.NewResponseController(c.w), c.options.Stall}
	w.extend()
	c.w.WriteHeader(status)
	return w
}

// paced extends the time for an answer with each piece of it.
type paced struct {
	to      io.Writer
	control *http.ResponseController
	stall   time.Duration
}

// Write implements io.Writer.
func (w *paced) Write(p []byte) (int, error) {
	w.extend()
	return w.to.Write(p)
}

func (w *paced) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) // without one, the server's holds
}

// refuse returns the error of a request that this mount itself can't translate.
func refuse(status int, message string) error {
	return &client.Error{Status: status, Message: message}
}

// fail answers with an error. Clients try again after RATELIMIT and UNKNOWN, and give up after
// MAINTENANCE. Anything else is text: they take it for the status ERROR and print it, whereas
// of JSON they print nothing.
func (c *call) fail(err error) {
	if c.begun {
		panic(http.ErrAbortHandler) // so that the client does not take a part for the whole
	}
	var e *client.Error
	if !errors.As(err, &e) {
		if c.ctx().Err() == nil { // the client is there
			zerolog.Ctx(c.ctx()).Error().Err(err).Msg("request to the alignment server failed")
		}
		e = &client.Error{Status: http.StatusInternalServerError, Message: "The service failed; its log gives the reason."}
	}
	// Clients save whatever a download is, and try again only when the connection breaks.
	busy := e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
	if busy && strings.HasPrefix(c.r.URL.Path, downloadPath) {
		panic(http.ErrAbortHandler)
	}
	message := strings.ReplaceAll(e.Error(), "body.settings.", "")
	status := ""
	switch {
	case e.Status == http.StatusTooManyRequests, e.Code == "QUOTA_EXCEEDED" && strings.Contains(message, "queued"):
		status = "RATELIMIT"
	case e.Status == http.StatusServiceUnavailable:
		status = "UNKNOWN"
	case e.Status == http.StatusInsufficientStorage:
		status = "MAINTENANCE"
	}
	if status != "" {
		_ = c.send(e.Status, answer{Status: status, Reason: message}) // the client may be gone
		return
	}
	if e.Status == http.StatusUnauthorized {
		message = "This alignment server needs an API key: as the password in the URL (http://key:molrun_…@host/msa), or in the header x-api-key."
	}
	_, _ = io.WriteString(c.begin("text/plain; charset=utf-8", e.Status), message+"\n") // the client may be gone
}
