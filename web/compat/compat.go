// Package compat serves the API of a hosted service under /compat/, so that scripts and
// command-line clients written for that service work unchanged when they are pointed
// here. It has no rules of its own: it translates each request to requests to the API in
// the same process, with the caller's key, and translates the responses back.
// web/docs/compat.md describes how to configure clients.
package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/client"
	"molrun/web/edge"
)

// Path is the path prefix of the mount.
const Path = "/compat/"

// Options configure the mount.
type Options struct {
	Log     zerolog.Logger
	MaxBody int64         // maximum size of a JSON body in bytes
	Arrive  time.Duration // time limit for receiving a body
	// Base returns the base URL at which a request's client reaches the service.
	Base func(*http.Request) (string, error)
	// Finish completes an upload whose contents were received through a link of this
	// mount.
	Finish func(ctx context.Context, upload string) error
	// OnRevoke registers a function to call with the ID of a key whose links are revoked,
	// or with "" when all links are. A nil OnRevoke means that links are never revoked.
	OnRevoke func(func(key string))
}

// mount translates requests.
type mount struct {
	api     http.Handler
	options Options
	logs    *logLinks
	reading chan struct{} // limits the bodies read concurrently
}

// maxReading limits the memory for bodies that the API has not yet received.
const maxReading = 4

// Handler returns a handler that translates requests into requests to api, which must
// also serve the API's signed links.
func Handler(api http.Handler, o Options) http.Handler {
	m := &mount{api: api, options: o, logs: newLogLinks(time.Now), reading: make(chan struct{}, maxReading)}
	if o.OnRevoke != nil {
		o.OnRevoke(m.logs.revoke)
	}
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*call) (any, error){
		"GET jobs":                        (*call).jobs,
		"POST jobs/search":                (*call).search,
		"POST submit-job":                 (*call).submit,
		"POST validate-job":               (*call).validate,
		"POST submit-batch":               (*call).submitBatch,
		"POST result":                     (*call).result,
		"POST results":                    (*call).result,
		"GET files":                       (*call).files,
		"GET getFolders":                  (*call).folders,
		"DELETE delete-file":              (*call).deleteFile,
		"POST delete-file":                (*call).deleteFile,
		"DELETE delete-job":               (*call).deleteJob,
		"POST delete-job":                 (*call).deleteJob,
		"POST cancelJob":                  (*call).cancel,
		"POST cancelBatch":                (*call).cancel,
		"GET tools":                       (*call).tools,
		"GET tools/{tool}/schema":         (*call).catalogSchema,
		"GET job-types":                   (*call).jobTypes,
		"GET catalog/tools":               (*call).catalogTools,
		"GET catalog/tools/{tool}/schema": (*call).catalogSchema,
		"GET catalog/modalities":          (*call).modalities,
		"GET catalog/functions":           (*call).functions,
		"GET catalog/jobs/{job}/logs":     (*call).logs,
		"PUT upload/{path...}":            (*call).upload,
		"POST getPresignedUploadUrl":      (*call).presign,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+Path+path, m.keyed(handle))
	}
	mux.HandleFunc("PUT "+Path+"blobs/{id}/{name}", m.putBlob)
	mux.HandleFunc("GET "+Path+"log/{token}", m.getLog)
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) { m.notFound(mux, w, r) })
	return edge.Mount(o.Log, mux)
}

// call is a request with a valid key.
type call struct {
	*mount
	w   http.ResponseWriter
	r   *http.Request
	api *client.Client
}

func (c *call) ctx() context.Context { return c.r.Context() }

// keyed returns a handler that sends the result of handle. A string is encoded as JSON,
// unless it is of type text.
func (m *mount) keyed(handle func(*call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{m, w, r, edge.InProcessClient(m.api, r)}
		if _, err := c.api.Get(r.Context(), nil, "session"); err != nil { // checks the key before reading a body
			c.fail(err)
			return
		}
		answer, err := handle(c)
		switch text, isText := answer.(text); {
		case err != nil:
			c.fail(err)
		case isText:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, string(text)) // the client may have disconnected
		default:
			c.writeAnswer(http.StatusOK, answer)
		}
	}
}

// text is a response that is not JSON.
type text string

func (c *call) writeAnswer(status int, answer any) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	e := json.NewEncoder(c.w)
	e.SetEscapeHTML(false)
	_ = e.Encode(answer) // the client may have disconnected
}

// body reads a JSON body. An empty body is an empty object.
func (c *call) body() (body map[string]any, err error) {
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-time.After(c.options.Arrive):
		return nil, &client.Error{Status: http.StatusServiceUnavailable, Code: "UNAVAILABLE", Message: "The service is busy; send the request again in a few seconds."}
	case <-c.ctx().Done():
		return nil, c.ctx().Err()
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.options.Arrive)) // on error, the server's deadline applies
	defer func() { _ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) }()
	content, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.options.MaxBody))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, &client.Error{Status: http.StatusRequestEntityTooLarge, Code: "BODY_TOO_LARGE", Message: "The body is larger than this service accepts; send fewer jobs, or upload files and refer to them."}
	}
	if err != nil {
		return nil, rejectf("the body did not arrive completely; send it again")
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(&body); err != nil || body == nil || d.More() {
		return nil, rejectf("the body must be one JSON object, such as {\"jobName\": \"run1\"}")
	}
	return body, nil
}

// member returns the first string found under one of the names, in the body or in the
// query.
func (c *call) member(body map[string]any, names ...string) string {
	for _, name := range names {
		if value, ok := body[name].(string); ok && value != "" {
			return value
		}
		if value := c.r.URL.Query().Get(name); value != "" {
			return value
		}
	}
	return ""
}

// switchOn reports whether a query parameter is "true", ignoring case.
func (c *call) switchOn(name string) bool {
	return strings.EqualFold(c.r.URL.Query().Get(name), "true")
}
