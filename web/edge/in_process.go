package edge

import (
	"context"
	"io"
	"net/http"
	"strings"

	"molrun/app/client"
)

// keyHeader has the API key of a caller.
const keyHeader = "x-api-key"

// RefuseCaller asks api who the caller is, and answers as it does if that is an error. It and the functions
// below send requests to the API in the same process, as if they came from where another request did: for
// handlers that speak to clients in other words, and hold no rule.
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
	_, _ = w.Write(answer.body.Bytes()) // the client may be gone
	return true
}

// InProcessClient returns a client that sends requests to api as if they came from where r does,
// with its key.
func InProcessClient(api http.Handler, r *http.Request) *client.Client {
	transport := inProcessTripper(func(out *http.Request) (*http.Response, error) {
		target := out.URL.RequestURI()
		if i := strings.Index(target, LinkPath); i > 0 { // of a link that begins with public_url
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

// LinkPath begins the path of signed links, behind that of public_url.
const LinkPath = "/blobs/"

// SendInProcess sends a request to api, and returns the status and the body of its answer. What api
// asks of the connection, such as a deadline, it asks of w.
func SendInProcess(api http.Handler, w http.ResponseWriter, in *http.Request) (status int, body []byte) {
	answer := newRecorder()
	answer.under = w
	api.ServeHTTP(answer, in)
	return answer.status, answer.body.Bytes()
}

// inProcessHost is the host of requests that never leave the process.
const inProcessHost = "molrun.invalid"

// InProcessRequest returns a request from where r comes from. What says who calls, the key
// and the addresses of proxies, is that of r.
func InProcessRequest(r *http.Request, method, target string, body io.Reader) *http.Request {
	in, err := http.NewRequestWithContext(r.Context(), method, "http://"+inProcessHost+target, body)
	if err != nil {
		in, _ = http.NewRequestWithContext(r.Context(), method, "http://"+inProcessHost+"/", nil) // which is valid
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

// Guest is a user whose requests need no key, because a handler in this process has admitted them.
type Guest struct{ Organization, Email string }

type guestKey struct{}

// AsGuest returns a request whose requests to the API in the same process are those of a guest.
func AsGuest(r *http.Request, g Guest) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), guestKey{}, g))
}

// GuestOf returns the guest that a request in this process is from.
func GuestOf(r *http.Request) (g Guest, ok bool) {
	g, ok = r.Context().Value(guestKey{}).(Guest)
	return g, ok
}
