// Package inner sends requests to the API in the same process, as if they came from
// where another request did: for what speaks to clients in other words, and holds no rule.
package inner

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"molrun/app/client"
)

// keyHeader has the API key of a caller.
const keyHeader = "x-api-key"

// Refuse asks api who the caller is, and answers as it does if that is an error.
func Refuse(api http.Handler, w http.ResponseWriter, r *http.Request) bool {
	answer := newRecorded()
	api.ServeHTTP(answer, Request(r, http.MethodGet, "/session", nil))
	if answer.status == http.StatusOK {
		return false
	}
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // the client may be gone
	return true
}

// Client returns a client that sends requests to api as if they came from where r does,
// with its key.
func Client(api http.Handler, r *http.Request) *client.Client {
	return client.NewWith("http://"+host, r.Header.Get(keyHeader), roundTripper(func(out *http.Request) (*http.Response, error) {
		target := out.URL.RequestURI()
		if i := strings.Index(target, LinkPath); i > 0 { // of a link that begins with public_url
			target = target[i:]
		}
		in := Request(r, out.Method, target, out.Body).WithContext(out.Context())
		in.ContentLength = out.ContentLength
		for name, values := range out.Header {
			in.Header[name] = values
		}
		answer := newRecorded()
		api.ServeHTTP(answer, in)
		return &http.Response{
			StatusCode: answer.status, Status: http.StatusText(answer.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: out,
		}, nil
	}))
}

// LinkPath begins the path of signed links, behind that of public_url.
const LinkPath = "/blobs/"

// Send sends a request to api, and returns the status and the body of its answer. What api
// asks of the connection, such as a deadline, it asks of w.
func Send(api http.Handler, w http.ResponseWriter, in *http.Request) (status int, body []byte) {
	answer := newRecorded()
	answer.under = w
	api.ServeHTTP(answer, in)
	return answer.status, answer.body.Bytes()
}

// host is the host of requests that never leave the process.
const host = "molrun.invalid"

// Request returns a request from where r comes from. What says who calls, the key
// and the addresses of proxies, is that of r.
func Request(r *http.Request, method, target string, body io.Reader) *http.Request {
	in, err := http.NewRequestWithContext(r.Context(), method, "http://"+host+target, body)
	if err != nil {
		in, _ = http.NewRequestWithContext(r.Context(), method, "http://"+host+"/", nil) // which is valid
	}
	in.RequestURI, in.RemoteAddr, in.Host, in.TLS = in.URL.RequestURI(), r.RemoteAddr, r.Host, r.TLS
	if in.Body == nil {
		in.Body = http.NoBody
	}
	for _, name := range []string{keyHeader, "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "X-Real-Ip"} {
		if values := r.Header.Values(name); len(values) > 0 {
			in.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	return in
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// recorded is an answer in memory. Those who use this package ask for small ones alone.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
	under  http.ResponseWriter // whose connection it is, if anybody asks
}

func newRecorded() *recorded { return &recorded{header: http.Header{}, status: http.StatusOK} }

// Header implements http.ResponseWriter.
func (r *recorded) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorded) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorded) Write(p []byte) (int, error) { return r.body.Write(p) }

// Unwrap is for http.ResponseController.
func (r *recorded) Unwrap() http.ResponseWriter { return r.under }
