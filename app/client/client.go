// Package client is a client of a molrun service. It needs only the service's address and
// an API key:
//
//	c := client.New("http://127.0.0.1:8080", key)
//	job, err := c.Submit(ctx, client.Submission{Name: "hst5", Type: "cg-idp", Settings: settings})
//	job, err = c.Wait(ctx, job.Name)
//	err = c.Download(ctx, client.ResultRequest{Job: job.Name}, "hst5.zip")
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"molrun/app/base/fault"
)

// Client sends requests with one API key. It is safe for concurrent use.
type Client struct {
	base    string
	key     string
	http    *http.Client
	backoff time.Duration // pause before resuming a download; grows with each attempt

	persist persistence
}

// New returns a client of the service at base that uses a user's API key.
func New(base, key string) *Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		IdleConnTimeout:       60 * time.Second,
		ResponseHeaderTimeout: 5 * time.Minute, // the service waits at most a minute, but its disk can take longer
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   16,
	}
	return NewWith(base, key, transport)
}

// NewWith is New with the given transport.
func NewWith(base, key string, transport http.RoundTripper) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, backoff: 500 * time.Millisecond, http: &http.Client{
		Transport: transport,
		// The service sends no redirects, and the key must not be sent to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// RetryConnections makes the client resend requests after connection errors, as when the
// service restarts, for at most the given time. It resends only idempotent requests, and
// only once the service has responded to any request: a wrong address still fails
// immediately.
func (c *Client) RetryConnections(most time.Duration) { c.persist.most = most }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is an unsuccessful response.
type Error struct {
	Status  int
	Code    string        // such as JOB_ALREADY_EXISTS; INVALID for status 422
	Message string        // tells the user what to do next
	Details []fault.Field // all errors, for INVALID
	Request string        // request ID in the service's log
	After   time.Duration // Retry-After, as with RATE_LIMITED; 0 if not given
}

func (e *Error) Error() string {
	if len(e.Details) == 0 {
		return e.Message
	}
	lines := make([]string, len(e.Details))
	for i, d := range e.Details {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// errorOf reads an unsuccessful response and closes it.
func errorOf(resp *http.Response) error {
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<20)) // even a partial body helps
	var body struct {
		Error  struct{ Code, Message string }
		Detail []fault.Field
	}
	e := &Error{Status: resp.StatusCode, Request: resp.Header.Get("X-Request-Id")}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.After = time.Duration(seconds) * time.Second
	}
	_ = json.Unmarshal(data, &body) // members stay empty if it is not JSON
	switch {
	case len(body.Detail) > 0:
		e.Code, e.Message, e.Details = "INVALID", body.Detail[0].Msg, body.Detail
	case body.Error.Code != "":
		e.Code, e.Message = body.Error.Code, body.Error.Message
	default:
		e.Message = fmt.Sprintf("the server returned %s; it might not be a molrun service", resp.Status)
	}
	return e
}

// path joins segments, each percent-encoded.
func path(segments ...string) string {
	out := ""
	for _, s := range segments {
		switch s {
		case ".", "..": // servers would resolve dot segments
			s = strings.ReplaceAll(s, ".", "%2E")
		case "summary": // a job name, not the route
			s = "%73ummary"
		default:
			s = url.PathEscape(s)
		}
		out += "/" + s
	}
	return out
}

// sendRequest sends a request to the API and returns a successful response, whose body
// the caller must close.
func (c *Client) sendRequest(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var send io.Reader
	if body != nil {
		var data bytes.Buffer
		e := json.NewEncoder(&data)
		e.SetEscapeHTML(false) // the service stores settings as sent
		if err := e.Encode(body); err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		send = bytes.NewReader(data.Bytes())
	}
	r, err := http.NewRequestWithContext(ctx, method, target, send)
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-api-key", c.key)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return c.roundTrip(r)
}

// roundTrip sends a request unchanged and returns a successful response, whose body the
// caller must close.
func (c *Client) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, withoutLink(err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, errorOf(resp)
	}
	return resp, nil
}

// withoutLink removes the query from an error's URL, because it can contain the token of
// a link.
func withoutLink(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		u.URL, _, _ = strings.Cut(u.URL, "?")
	}
	return err
}

// requestJSON sends a request and returns the decoded response.
func requestJSON[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (*T, error) {
	var out T
	if err := c.call(ctx, method, path, query, body, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// call sends a request and decodes the response into out unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	return c.persist.sendPersistently(method, path,
		func() error { return c.callOnce(ctx, method, path, query, body, out) },
		func(stuck int) bool { return c.pause(ctx, stuck) })
}

func (c *Client) callOnce(ctx context.Context, method, path string, query url.Values, body, out any) error {
	resp, err := c.sendRequest(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read-only
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("decode response to %s %s: %w", method, path, err)
	}
	return nil
}

// Answer is an undecoded JSON response of the service.
type Answer = json.RawMessage

// Get sends a GET request and returns the response. Path segments are given unescaped.
func (c *Client) Get(ctx context.Context, query url.Values, segments ...string) (Answer, error) {
	return c.answer(ctx, http.MethodGet, query, nil, segments)
}

// Post sends a POST request with body as JSON and returns the response.
func (c *Client) Post(ctx context.Context, body any, segments ...string) (Answer, error) {
	return c.answer(ctx, http.MethodPost, nil, body, segments)
}

func (c *Client) answer(ctx context.Context, method string, query url.Values, body any, segments []string) (a Answer, err error) {
	err = c.call(ctx, method, path(segments...), query, body, &a)
	return a, err
}

// Decode decodes a response. It ignores members that T does not have.
func Decode[T any](a Answer) (*T, error) {
	var out T
	if err := json.Unmarshal(a, &out); err != nil {
		return nil, fmt.Errorf("decode response: %w", err)
	}
	return &out, nil
}

// OpenBody sends a GET request and returns the response body, which the caller must
// close.
func (c *Client) OpenBody(ctx context.Context, query url.Values, segments ...string) (io.ReadCloser, error) {
	resp, err := c.sendRequest(ctx, http.MethodGet, path(segments...), query, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Remove sends a DELETE request.
func (c *Client) Remove(ctx context.Context, segments ...string) error {
	return c.call(ctx, http.MethodDelete, path(segments...), nil, nil, nil)
}
