package edge

import (
	"context"
	"io"
	"net/http"
	"strings"

	"molrun/app/client"
)

// keyHeader is the header with the caller's API key.
const keyHeader = "x-api-key"

// RefuseCaller checks the caller's key with api. If api returns an error, RefuseCaller
// sends that response and returns true.
//
// It and the functions below send requests to the API in the same process, as if they
// came from the same client as another request. They are for handlers that translate
// other APIs and have no rules of their own.
func RefuseCaller(api http.Handler, w http.ResponseWriter, r *http.Request) bool {
	answer := newRecorder()
	api.ServeHTTP(answer, InProcessRequest(r, http.MethodGet, "/session", nil))
	if answer.status == http.StatusOK {
		return false
	}
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // the client may have disconnected
	return true
}

// InProcessClient returns a client that sends requests to api with the origin and key of
// r.
func InProcessClient(api http.Handler, r *http.Request) *client.Client {
	transport := inProcessTripper(func(out *http.Request) (*http.Response, error) {
		target := out.URL.RequestURI()
		if i := strings.Index(target, LinkPath); i > 0 { // a link that begins with public_url
			target = target[i:]
		}
		in := InProcessRequest(r, out.Method, target, out.Body).WithContext(out.Context())
		in.ContentLength = out.ContentLength
		for name, values := range out.Header {
			in.Header[name] = values
		}
		answer := newRecorder()
		api.ServeHTTP(answer, in)
		return &http.Response{
			StatusCode: answer.status, Status: http.StatusText(answer.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: out,
		}, nil
	})
	return client.NewWith("http://"+inProcessHost, r.Header.Get(keyHeader), transport)
}

// LinkPath is the path prefix of signed links, after the path of public_url.
const LinkPath = "/blobs/"

// SendInProcess sends a request to api and returns the status and body of its response.
// Operations on the connection, such as deadlines, apply to w.
func SendInProcess(api http.Handler, w http.ResponseWriter, in *http.Request) (status int, body []byte) {
	answer := newRecorder()
	answer.under = w
	api.ServeHTTP(answer, in)
	return answer.status, answer.body.Bytes()
}

// inProcessHost is the host of requests that never leave the process.
const inProcessHost = "molrun.invalid"

// InProcessRequest returns a request with the origin of r: it copies the key and the
// proxy headers.
func InProcessRequest(r *http.Request, method, target string, body io.Reader) *http.Request {
	in, err := http.NewRequestWithContext(r.Context(), method, "http://"+inProcessHost+target, body)
	if err != nil {
		in, _ = http.NewRequestWithContext(r.Context(), method, "http://"+inProcessHost+"/", nil) // always valid
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

type inProcessTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f inProcessTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Guest is a user whose requests need no key, because a handler in this process has
// admitted them.
type Guest struct{ Organization, Email string }

type guestKey struct{}

// AsGuest returns a request whose requests to the API in the same process are made as g.
func AsGuest(r *http.Request, g Guest) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), guestKey{}, g))
}

// GuestOf returns the guest of an in-process request.
func GuestOf(r *http.Request) (g Guest, ok bool) {
	g, ok = r.Context().Value(guestKey{}).(Guest)
	return g, ok
}
