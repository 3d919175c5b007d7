package contract

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

const description = `
openapi: 3.1.0
info: {title: a, version: '1'}
paths:
  /things/{name}:
    get:
      parameters: [{$ref: '#/components/parameters/Limit'}]
      responses:
        '200':
          description: it
          headers: {X-Request-Id: {$ref: '#/components/headers/Id'}}
          content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}
        '404':
          description: not it
          x-error-codes: [NOT_FOUND]
          content: {application/json: {schema: {$ref: '#/components/schemas/Error'}}}
    post:
      requestBody: {content: {application/json: {schema: {type: object, maxProperties: 0}}}}
      responses: {'204': {description: done}}
components:
  parameters: {Limit: {name: limit, in: query, schema: {type: integer}}}
  headers: {Id: {required: true, schema: {type: string, pattern: '^[a-z]$'}}}
  schemas:
    Thing: {type: object, required: [size], additionalProperties: false, properties: {size: {type: integer}, at: {type: string, format: date-time}}}
    Error: {type: object, required: [error]}
`

// recorder is a testing.TB that collects failures.
type recorder struct {
	testing.TB
	faults []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.faults = append(r.faults, strings.TrimSpace(format))
}

func TestViolationsOfTheDescriptionAreFaults(t *testing.T) {
	json := map[string]string{"Content-Type": "application/json", "X-Request-Id": "a"}
	tests := []struct {
		name, method, path, sent string
		status                   int
		header                   map[string]string
		body                     string
		faults                   int
	}{
		{"as described", "GET", "/things/a", "", 200, json, `{"size":1,"at":"2026-01-01T00:00:00.000Z"}`, 0},
		{"escaped name", "GET", "/things/a%2Fb?limit=1", "", 200, json, `{"size":1}`, 0},
		{"HEAD", "HEAD", "/things/a", "", 200, json, "", 0},
		{"no body", "POST", "/things/a", "{}", 204, json, "", 0},
		{"unknown path", "GET", "/other", "", 404, json, `{"error":{}}`, 0},
		{"a link", "GET", "/blobs/x", "", 418, json, "anything", 0},

		{"member missing", "GET", "/things/a", "", 200, json, `{}`, 1},
		{"extra member", "GET", "/things/a", "", 200, json, `{"size":1,"more":1}`, 1},
		{"wrong format", "GET", "/things/a", "", 200, json, `{"size":1,"at":"noon"}`, 1},
		{"not JSON", "GET", "/things/a", "", 200, json, `{`, 1},
		{"status not described", "GET", "/things/a", "", 500, json, `{}`, 1},
		{"type not described", "GET", "/things/a", "", 200, map[string]string{"Content-Type": "text/html", "X-Request-Id": "a"}, `{"size":1}`, 1},
		{"no request id", "GET", "/things/a", "", 404, map[string]string{"Content-Type": "application/json"}, `{"error":{"code":"NOT_FOUND"}}`, 1},
		{"code not described", "GET", "/things/a", "", 404, json, `{"error":{"code":"FORBIDDEN"}}`, 1},
		{"request id of another form", "GET", "/things/a", "", 200, map[string]string{"Content-Type": "application/json", "X-Request-Id": "A"}, `{"size":1}`, 1},
		{"parameter not described", "GET", "/things/a?more=1", "", 200, json, `{"size":1}`, 1},
		{"body not described", "POST", "/things/a", `{"a":1}`, 204, json, "", 1},
		{"unknown path that answers", "GET", "/other", "", 200, json, `{}`, 1},
		{"unknown method without Allow", "PUT", "/things/a", "", 405, json, `{"error":{}}`, 1},
		{"a link without request id", "GET", "/blobs/x", "", 200, nil, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			checker, err := New([]byte(description))
			must.OK(t, err)
			r, err := http.NewRequest(tt.method, server.URL+tt.path, strings.NewReader(tt.sent))
			must.OK(t, err)
			seen := &recorder{TB: t}
			resp, err := checker.Transport(seen, http.DefaultTransport).RoundTrip(r)
			must.OK(t, err)
			body, err := io.ReadAll(resp.Body)
			must.OK(t, err)
			if tt.method != http.MethodHead && string(body) != tt.body {
				t.Errorf("the body arrived as %q, want %q", body, tt.body)
			}
			must.Equal(t, fmt.Sprintf("number of faults in %q", seen.faults), len(seen.faults), tt.faults)
		})
	}
}

func TestUnmetListsUnseenAnswers(t *testing.T) {
	checker, err := New([]byte(description))
	must.OK(t, err)
	checker.remember(Operation{"GET", "/things/{name}"}, "200")
	unmet := checker.Unmet(func(op Operation, _ string) bool { return op.Method == "POST" })
	if len(unmet) != 1 || unmet[0] != "GET /things/{name} 404" {
		t.Errorf("unmet are %q, want only GET /things/{name} 404", unmet)
	}
}

// described returns a checker for the description of the API.
func described(t *testing.T) *Checker {
	t.Helper()
	text, err := os.ReadFile("../../../web/openapi.yaml")
	must.OK(t, err)
	checker, err := New(text)
	must.OK(t, err)
	return checker
}

// TestDescriptionHasVersion1 pins the version of the description, and so also the version
// in responses of GET /version, which are checked against it. Additions do not change it.
func TestDescriptionHasVersion1(t *testing.T) {
	spec := described(t).Spec
	answer := []string{"paths", "/version", "get", "responses", "200", "content", "application/json", "schema", "properties", "apiVersion", "const"}
	for _, place := range [][]string{{"info", "version"}, answer} {
		must.Equal(t, strings.Join(place, "."), spec.at(place...), "1.0.0")
	}
}

// TestEveryErrorHasDescribedCodes requires x-error-codes, with codes of the API, for
// every response that is an Error.
func TestEveryErrorHasDescribedCodes(t *testing.T) {
	checker := described(t)
	known, _ := checker.Spec.at("components", "schemas", "ErrorCode", "enum").([]any)
	for _, op := range checker.Spec.Operations() {
		for _, status := range checker.Spec.Statuses(op) {
			place := checker.Spec.follow(op.at("responses", status)...)
			schema := append(slices.Clone(place), "content", "application/json", "schema", "$ref")
			if checker.Spec.at(schema...) != "#/components/schemas/Error" {
				continue
			}
			codes, _ := checker.Spec.at(append(slices.Clone(place), "x-error-codes")...).([]any)
			if len(codes) == 0 {
				t.Errorf("%v %s has no x-error-codes", op, status)
			}
			for _, code := range codes {
				if !slices.Contains(known, code) {
					t.Errorf("%v %s: %v is not an ErrorCode", op, status, code)
				}
			}
		}
	}
}

func TestInvalidDescriptionsAreRefused(t *testing.T) {
	for _, text := range []string{"", "[]", "a: [", "3"} {
		if _, err := New([]byte(text)); err == nil {
			t.Errorf("%q was read as a description", text)
		}
	}
}

func TestExamplesMatchTheirSchemas(t *testing.T) {
	checker := described(t)
	examples := 0
	var walk func(place []string, value any)
	walk = func(place []string, value any) {
		object, _ := value.(map[string]any)
		below := func(name string) []string { return append(append([]string(nil), place...), name) }
		if example, ok := object["example"]; ok && object["schema"] != nil {
			examples++
			for _, fault := range checker.validateValue("the example", example, below("schema")...) {
				t.Errorf("%v: %s", place, fault)
			}
		}
		if list, ok := object["examples"].([]any); ok {
			for _, example := range list {
				examples++
				for _, fault := range checker.validateValue("the example", example, place...) {
					t.Errorf("%v: %s", place, fault)
				}
			}
		}
		if named, ok := object["examples"].(map[string]any); ok && object["schema"] != nil {
			for name, example := range named {
				examples++
				for _, fault := range checker.validateValue("the example "+name, example.(map[string]any)["value"], below("schema")...) {
					t.Errorf("%v: %s", place, fault)
				}
			}
		}
		for name, member := range object {
			walk(below(name), member)
		}
	}
	walk(nil, checker.Spec.root)
	if examples < 10 {
		t.Errorf("found %d examples, expected more", examples)
	}
}
