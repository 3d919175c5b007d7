// Package msa serves the API of the ColabFold MSA server under /msa/, which ColabFold,
// Boltz, Chai-1 and Protenix can use unchanged as their alignment server. It has no rules
// of its own: a ticket is a job of type msa, named after its query, and each request
// becomes requests to the API in the same process. web/docs/msa.md describes how to
// configure clients.
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

// Path is the path prefix of the mount.
const Path = "/msa/"

// downloadPath is the path prefix of downloads.
const downloadPath = Path + "result/download/"

// Options configure the mount.
type Options struct {
	Log       zerolog.Logger
	MaxBody   int64         // maximum size of a query in bytes
	Arrive    time.Duration // time limit for receiving a query
	Stall     time.Duration // how long a download can stall
	Databases func() string // identifies the databases; different databases give different tickets
	Cores     int           // cores per search; 0 means the maximum of the job type

	Trusted      []netip.Prefix // proxies whose X-Forwarded-For is trusted
	Networks     []netip.Prefix // networks whose clients need no key
	Organization string         // organization of their jobs
}

// guestEmail is the user of clients without a key.
const guestEmail = "msa@localhost"

// mount translates requests.
type mount struct {
	api        http.Handler
	options    Options
	reading    *limit.Slots // limits the queries read concurrently
	submitting *limit.Slots // one submission per query at a time
}

// Handler returns a handler that translates to the API.
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

// call is a request of an authenticated caller.
type call struct {
	*mount
	w   http.ResponseWriter
	r   *http.Request
	api *client.Client

	begun bool // the response has begun
}

func (c *call) ctx() context.Context { return c.r.Context() }

// admit authenticates the caller with the API before a query is read.
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

// identified returns the request with its caller's identity: the key in x-api-key, a key
// sent as the user or password of basic authentication, which is all that some clients
// support, or a guest.
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
	// Any web page can make a browser in the network send requests.
	isBrowser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if !isBrowser && edge.ClientIn(m.options.Networks, r, m.options.Trusted) {
		return edge.AsGuest(r, edge.Guest{Organization: m.options.Organization, Email: guestEmail})
	}
	return r
}

// answer is the status of a ticket in the format of clients.
type answer struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"` // for humans
}

func (c *call) send(status int, a answer) error {
	w := c.begin("application/json", status)
	return json.NewEncoder(w).Encode(a)
}

// begin begins a response, which can then take as long as it makes progress.
func (c *call) begin(contentType string, status int) io.Writer {
	c.begun = true
	c.w.Header().Set("Content-Type", contentType)
	w := &paced{c.w, http.NewResponseController(c.w), c.options.Stall}
	w.extend()
	c.w.WriteHeader(status)
	return w
}

// paced extends the write deadline with each write.
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
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) // on error, the server's deadline applies
}

// refuse returns an error for a request that this mount cannot translate.
func refuse(status int, message string) error {
	return &client.Error{Status: status, Message: message}
}

// fail sends an error. Clients retry after RATELIMIT and UNKNOWN, and give up after
// MAINTENANCE. Any other error is sent as plain text: clients treat it as the status
// ERROR and print it, whereas they would not print JSON.
func (c *call) fail(err error) {
	if c.begun {
		panic(http.ErrAbortHandler) // so the client can tell that the response is incomplete
	}
	var e *client.Error
	if !errors.As(err, &e) {
		if c.ctx().Err() == nil { // the client is still connected
			zerolog.Ctx(c.ctx()).Error().Err(err).Msg("request to the alignment server failed")
		}
		e = &client.Error{Status: http.StatusInternalServerError, Message: "Internal error; see the service's log."}
	}
	// Clients save any response to a download, and only retry if the connection breaks.
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
		_ = c.send(e.Status, answer{Status: status, Reason: message}) // the client may have disconnected
		return
	}
	if e.Status == http.StatusUnauthorized {
		message = "This alignment server needs an API key: as the password in the URL (http://key:molrun_…@host/msa), or in the header x-api-key."
	}
	_, _ = io.WriteString(c.begin("text/plain; charset=utf-8", e.Status), message+"\n") // the client may have disconnected
}
