package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker compares exchanges with an OpenAPI description and records them. The
// tests of a package share one, so that Unmet covers all of them.
type Checker struct {
	Spec *Spec

	mu  sync.Mutex
	met map[string]bool
}

// New parses a description in YAML.
func New(openAPI []byte) (*Checker, error) {
	spec, err := Parse(openAPI)
	if err != nil {
		return nil, err
	}
	return &Checker{Spec: spec, met: map[string]bool{}}, nil
}

// Transport returns a transport that fails t if an exchange violates the description.
// Links, the control socket and the user interface are not described, so only their
// request ID is checked.
func (c *Checker) Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return transport{c, t, next}
}

type transport struct {
	checker *Checker
	t       testing.TB
	next    http.RoundTripper
}

func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	described := !undescribed(r.URL.Path)
	var sent []byte
	if described && r.Body != nil {
		var err error
		if sent, r.Body, err = peek(r.Body); err != nil {
			return nil, err
		}
	}
	resp, err := tr.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	e := exchange{request: r, response: resp, sent: sent}
	switch {
	case described && isStream(resp):
		resp.Body = &stream{ReadCloser: resp.Body, checker: tr.checker, t: tr.t}
	case described:
		if e.received, resp.Body, err = peek(resp.Body); err != nil {
			return nil, err
		}
	}
	for _, fault := range tr.checker.check(e, described) {
		tr.t.Errorf("%s %s answered %d: %s\nbody: %s", r.Method, r.URL.EscapedPath(), resp.StatusCode, fault, shorten(e.received))
	}
	return resp, nil
}

func undescribed(path string) bool {
	return slices.ContainsFunc([]string{"/blobs/", "/control/", "/ui/", "/client/", "/compat/", "/msa/"}, func(prefix string) bool {
		return strings.HasPrefix(path, prefix)
	})
}

// peek reads a body to its end and returns its content, and a new body with the same
// content.
func peek(body io.ReadCloser) ([]byte, io.ReadCloser, error) {
	data, err := io.ReadAll(body)
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	return data, io.NopCloser(bytes.NewReader(data)), err
}

func shorten(body []byte) string {
	if len(body) > 2000 {
		return string(body[:2000]) + "…"
	}
	return string(body)
}

type exchange struct {
	request        *http.Request
	response       *http.Response
	sent, received []byte
}

// check returns the violations found in an exchange.
func (c *Checker) check(e exchange, described bool) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if e.response.Header.Get("X-Request-Id") == "" {
		fault("X-Request-Id is missing")
	}
	if !described {
		return faults
	}
	op, found := c.Spec.find(e.request.Method, e.request.URL.EscapedPath())
	if !found {
		return append(faults, c.checkUndescribed(e)...)
	}
	status := strconv.Itoa(e.response.StatusCode)
	place := c.Spec.follow(op.at("responses", status)...)
	if c.Spec.at(place...) == nil {
		fault("the status is not described")
		return faults
	}
	c.remember(op, status)
	faults = append(faults, c.checkHeaders(e, place)...)
	faults = append(faults, c.checkBody(e, place)...)
	faults = append(faults, c.checkCode(e, place)...)
	if e.response.StatusCode < 300 {
		faults = append(faults, c.checkAccepted(e, op)...)
	}
	return faults
}

// checkUndescribed checks the response to a path or method that is not described.
func (c *Checker) checkUndescribed(e exchange) []string {
	if s := e.response.StatusCode; s != http.StatusNotFound && s != http.StatusMethodNotAllowed {
		return []string{"neither the path nor its answer is described"}
	}
	if e.response.StatusCode == http.StatusMethodNotAllowed && e.response.Header.Get("Allow") == "" {
		return []string{"Allow is missing"}
	}
	return c.validate(e, e.received, "components", "schemas", "Error")
}

func (c *Checker) checkHeaders(e exchange, place []string) []string {
	var faults []string
	headers := append(slices.Clone(place), "headers")
	for _, name := range sortedKeys(c.Spec.at(headers...)) {
		at := c.Spec.follow(append(slices.Clone(headers), name)...)
		value := e.response.Header.Get(name)
		if value == "" {
			if c.Spec.at(append(slices.Clone(at), "required")...) == true {
				faults = append(faults, "the header "+name+" is missing")
			}
			continue
		}
		schema := append(slices.Clone(at), "schema")
		var instance any = value
		if c.Spec.at(append(slices.Clone(schema), "type")...) == "integer" {
			n, err := strconv.Atoi(value)
			if err != nil {
				faults = append(faults, fmt.Sprintf("the header %s is %q, which is not an integer", name, value))
				continue
			}
			instance = n
		}
		faults = append(faults, c.validateValue("the header "+name, instance, schema...)...)
	}
	return faults
}

func (c *Checker) checkBody(e exchange, place []string) []string {
	contentType := e.response.Header.Get("Content-Type")
	if c.Spec.at(append(slices.Clone(place), "content")...) == nil {
		if len(e.received) > 0 {
			return []string{"there is a body where none is described"}
		}
		return nil
	}
	at, found := c.Spec.content(place, contentType)
	if !found {
		return []string{fmt.Sprintf("the Content-Type %q is not described", contentType)}
	}
	if e.request.Method == http.MethodHead || !strings.HasSuffix(at[len(at)-1], "json") {
		return nil
	}
	return c.validate(e, e.received, append(at, "schema")...)
}

// checkCode checks that an error has one of the codes listed in x-error-codes. They are
// not in the schema, because every generated client would then have an error type for
// each response.
func (c *Checker) checkCode(e exchange, place []string) []string {
	codes, ok := c.Spec.at(append(slices.Clone(place), "x-error-codes")...).([]any)
	if !ok || e.request.Method == http.MethodHead {
		return nil
	}
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(e.received, &body); err != nil || !slices.Contains(codes, any(body.Error.Code)) {
		return []string{fmt.Sprintf("the code %q is not among those described, %v", body.Error.Code, codes)}
	}
	return nil
}

// checkAccepted checks that a request that the service accepted is described.
func (c *Checker) checkAccepted(e exchange, op Operation) []string {
	var faults []string
	known := c.Spec.Inputs(op)
	for name := range e.request.URL.Query() {
		if !slices.ContainsFunc(known, func(i Input) bool { return i.In == "query" && i.Name == name }) {
			faults = append(faults, fmt.Sprintf("the query parameter %q was accepted and is not described", name))
		}
	}
	place := c.Spec.follow(op.at("requestBody")...)
	switch described := c.Spec.at(place...) != nil; {
	case len(bytes.TrimSpace(e.sent)) == 0:
	case !described:
		faults = append(faults, "a body was accepted and none is described")
	default:
		at, found := c.Spec.content(place, e.request.Header.Get("Content-Type"))
		if !found { // {} and null are accepted with any media type
			at = append(slices.Clone(place), "content", "application/json")
		}
		if strings.HasSuffix(at[len(at)-1], "json") {
			faults = append(faults, c.validate(e, bytes.TrimPrefix(e.sent, []byte("\uFEFF")), append(at, "schema")...)...)
		}
	}
	return faults
}

func (c *Checker) validate(e exchange, body []byte, place ...string) []string {
	if e.request.Method == http.MethodHead {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return []string{"the body is not JSON: " + err.Error()}
	}
	return c.validateValue("the body", value, place...)
}

func (c *Checker) validateValue(what string, value any, place ...string) []string {
	c.mu.Lock() // the compiler is not safe for concurrent use
	schema, err := c.Spec.schema(place...)
	c.mu.Unlock()
	if err != nil {
		return []string{fmt.Sprintf("the schema of %s at %v can't be used: %v", what, place, err)}
	}
	if err := schema.Validate(value); err != nil {
		return []string{fmt.Sprintf("%s is not as described: %v", what, err)}
	}
	return nil
}

func (c *Checker) remember(op Operation, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met[op.Method+" "+op.Path+" "+status] = true
}

// Unmet lists the described responses that no test has seen, such as "GET /jobs 200",
// except those for which except returns true.
func (c *Checker) Unmet(except func(op Operation, status string) bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var unmet []string
	for _, op := range c.Spec.Operations() {
		for _, status := range c.Spec.Statuses(op) {
			if name := op.Method + " " + op.Path + " " + status; !c.met[name] && !except(op, status) {
				unmet = append(unmet, name)
			}
		}
	}
	return unmet
}
