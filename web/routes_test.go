package web_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/apikey"
	"molrun/app/test/contract"
	"molrun/app/test/must"
	"molrun/web"
)

func TestRoutesAreSortedByPath(t *testing.T) {
	var paths []string
	for _, r := range web.Routes() {
		paths = append(paths, strings.NewReplacer(":", "", "*", "").Replace(r.Path)+" "+r.Method)
	}
	if !slices.IsSorted(paths) {
		t.Errorf("the table of routes is not sorted by path: %q", paths)
	}
}

func TestRoutesMatchTheDescription(t *testing.T) {
	var routed, named []contract.Operation
	for _, r := range web.Routes() {
		routed = append(routed, contract.Operation{Method: r.Method, Path: template(r.Path)})
	}
	named = described.Spec.Operations()
	order := func(a, b contract.Operation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) }
	slices.SortFunc(routed, order)
	slices.SortFunc(named, order)
	same(t, "routes", routed, named)
}

// call is a request without parameters.
type call struct{ method, path string }

// calls returns one request for each route that requires a key.
func calls() []call {
	var all []call
	for _, r := range web.Routes() {
		if !r.Open {
			path := template(r.Path)
			for _, name := range []string{"{type}", "{fileId}", "{jobName}", "{filename}", "{path}", "{name}", "{keyId}", "{email}", "{webhookId}"} {
				path = strings.ReplaceAll(path, name, "absent")
			}
			all = append(all, call{r.Method, path})
		}
	}
	return all
}

func (c call) String() string { return c.method + " " + c.path }

// takesBody reports whether the route reads a JSON body.
func (c call) takesBody() bool {
	return c.method == "POST" || c.method == "DELETE" || c.method == "PATCH"
}

func TestEveryRouteRefusesBadKeysInTheSameWay(t *testing.T) {
	s := start(t)
	disabled, expired := newKey(t, s.app.Accounts, "lab", "carl@lab.example", apikey.Member), s.expiredKey()
	s.disable(disabled)
	deleted := newKey(t, s.app.Accounts, "lab", "carl@lab.example", apikey.Member)
	must.OK(t, s.app.Accounts.DeleteKey(t.Context(), app.Operator(), idOf(deleted)))
	last := string([]byte{s.ann[len(s.ann)-1] ^ 1})
	bad := map[string][]string{
		"missing":       nil,
		"empty":         {"x-api-key", ""},
		"sent twice":    {"x-api-key", s.ann, "x-api-key", s.ann},
		"two in one":    {"x-api-key", s.ann + ", " + s.ann},
		"sent in query": nil,
		"unknown":       {"x-api-key", "molrun_aaaaaaaaaaaa_" + strings.Repeat("A", 43) + "_AAAAAA"},
		"mistyped":      {"x-api-key", s.ann[:len(s.ann)-1] + last},
		"no key at all": {"x-api-key", "secret"},
		"disabled":      {"x-api-key", disabled},
		"expired":       {"x-api-key", expired},
		"deleted":       {"x-api-key", deleted},
		"as a bearer":   {"Authorization", "Bearer " + s.ann},
	}
	const body = `{"error":{"code":"UNAUTHORIZED","message":"Send a valid API key in x-api-key; an administrator can create one with ` + "`molrun key create`" + `."}}` + "\n"
	for _, c := range calls() {
		for _, name := range sorted(bad) {
			path := c.path
			if name == "sent in query" {
				path += "?x-api-key=" + s.ann
			}
			a := s.send(c.method, path, "", bad[name]...)
			if a.status != 401 || a.body != body {
				t.Errorf("%v, key %s: %d %s", c, name, a.status, a.body)
			}
		}
	}
}

func TestOpenRoutesNeedNoKey(t *testing.T) {
	s := start(t)
	for _, r := range web.Routes() {
		if r.Open && r.Method == "GET" {
			for _, method := range []string{"GET", "HEAD"} {
				if a := s.send(method, r.Path, ""); a.status != 200 && !strings.HasPrefix(r.Path, "/shared/") || a.status == 401 || (a.body == "") != (method == "HEAD") {
					t.Errorf("%s %s: %d %.200s", method, r.Path, a.status, a.body)
				}
			}
		}
	}
}

func TestUnknownPathsAndMethodsAreErrorObjects(t *testing.T) {
	s := start(t)
	tests := []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "NOT_FOUND", ""},
		{"GET", "/nothing", 404, "NOT_FOUND", ""},
		{"GET", "//jobs", 404, "NOT_FOUND", ""},
		{"GET", "/jobs/", 404, "NOT_FOUND", ""},
		{"GET", "/Jobs", 404, "NOT_FOUND", ""},
		{"GET", "/job%73", 404, "NOT_FOUND", ""},
		{"GET", "/jobs/a/b/c", 404, "NOT_FOUND", ""},
		{"GET", "/x/../jobs", 404, "NOT_FOUND", ""},
		{"GET", "/%2e%2e/jobs", 404, "NOT_FOUND", ""},
		{"GET", "/" + strings.Repeat("x", 5000), 404, "NOT_FOUND", ""},
		{"POST", "/jobs", 405, "METHOD_NOT_ALLOWED", "GET, HEAD"},
		{"PUT", "/jobs/a", 405, "METHOD_NOT_ALLOWED", "DELETE, GET, HEAD, PATCH"},
		{"OPTIONS", "/submit-job", 405, "METHOD_NOT_ALLOWED", "POST"},
		{"GET", "/upload/a", 405, "METHOD_NOT_ALLOWED", "PUT"},
		{"BREW", "/healthz", 405, "METHOD_NOT_ALLOWED", "GET, HEAD"},
		{"POST", "/blobs/nothing", 405, "METHOD_NOT_ALLOWED", "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"},
	}
	for _, tt := range tests {
		a := s.send(tt.method, tt.path, "")
		if a.status != tt.status || a.code() != tt.code || a.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, a.status, a.body)
		}
		allow := strings.Split(a.header.Get("Allow"), ", ")
		slices.Sort(allow)
		same(t, tt.method+" "+tt.path+" Allow", strings.Join(allow, ", "), tt.allow)
		if a.header.Get("Location") != "" || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: headers %v", tt.method, tt.path, a.header)
		}
	}
}

func TestEveryRefusalIsAnErrorObjectThatSaysWhatToDo(t *testing.T) {
	s := start(t)
	s.submit("queued")
	grant := s.want(200, "PUT", "/upload/a.txt", "").fields(t)
	file := s.upload("b.pdb", "ATOM")
	s.want(200, "POST", "/submit-job", `{"jobName":"reader","type":"echo","settings":{"structure":"`+file+`"}}`)
	for _, tt := range []struct {
		key, method, path, body string
		status                  int
		code, says              string
	}{
		{s.bob, "POST", "/jobs/queued/cancel", "", 403, "FORBIDDEN", "ann@lab.example"},
		{s.bob, "DELETE", "/files/" + file, "", 403, "FORBIDDEN", "ann@lab.example"},
		{s.ann, "GET", grant["uploadUrl"].(string), "", 403, "LINK_INVALID", "request a new one"},
		{s.ann, "GET", "/jobs/none", "", 404, "NOT_FOUND", "GET /jobs"},
		{s.ann, "GET", "/nothing", "", 404, "NOT_FOUND", "openapi"},
		{s.ann, "PATCH", "/jobs", "", 405, "METHOD_NOT_ALLOWED", "GET"},
		{s.ann, "POST", "/submit-job", `{"jobName":"queued","type":"echo","settings":{"steps":7}}`, 409, "JOB_ALREADY_EXISTS", "jobName"},
		{s.ann, "POST", "/result", `{"jobName":"queued"}`, 409, "JOB_NOT_COMPLETED", "COMPLETED"},
		{s.ann, "DELETE", "/jobs/queued", "", 409, "JOB_NOT_FINISHED", "cancel"},
		{s.ann, "POST", "/jobs/queued/retry", "", 409, "JOB_NOT_FAILED", "FAILED"},
		{s.ann, "POST", "/upload/" + grant["fileId"].(string) + "/complete", "", 409, "UPLOAD_NOT_RECEIVED", "uploadUrl"},
		{s.ann, "DELETE", "/files/" + file, "", 409, "FILE_IN_USE", "reader"},
	} {
		a := s.as(tt.key, tt.method, tt.path, tt.body)
		if a.status != tt.status || a.code() != tt.code || !strings.Contains(a.body, tt.says) {
			t.Errorf("%s %s: %d %s, want %d %s with %q", tt.method, tt.path, a.status, a.body, tt.status, tt.code, tt.says)
		}
	}
	s.wantSent(415, "POST", "/submit-job", "{}", "x-api-key", s.ann).has(t, "application/json")
}

func TestEveryRouteRejectsUnknownParametersAndBadBodies(t *testing.T) {
	s := start(t)
	for _, c := range calls() {
		a := s.as(s.root, c.method, c.path+"?nonsense=1", "")
		if a.status != 422 || !slices.Contains(a.faults(t), "query.nonsense unknown") {
			t.Errorf("%v: %d %s", c, a.status, a.body)
		}
		if !c.takesBody() {
			continue
		}
		for body, fault := range map[string]string{
			`{"nonsense":1}`:   "body.nonsense unknown",
			`{"a":1,"a":1}`:    "body.a duplicate",
			`{`:                "body json",
			`[]`:               "body type",
			`{} {}`:            "body json",
			"{\"a\":\"\xff\"}": "body json",
		} {
			if a := s.as(s.root, c.method, c.path, body); !slices.Contains(a.faults(t), fault) {
				t.Errorf("%v %s: want %s, got %d %s", c, body, fault, a.status, a.body)
			}
		}
	}
}

func TestEveryRouteRejectsHeadersThatAreTooLarge(t *testing.T) {
	s := start(t)
	for _, op := range described.Spec.Operations() {
		a := s.send(op.Method, strings.NewReplacer("{", "", "}", "").Replace(op.Path), "", "X-Large", strings.Repeat("x", 17<<10))
		if a.status != 422 || !slices.Contains(a.faults(t), "header value") {
			t.Errorf("%v: %d %s", op, a.status, a.body)
		}
	}
}

func TestJSONOfWindowsIsRead(t *testing.T) {
	s := start(t)
	for name, declared := range map[string]string{"a": "application/json; charset=utf8", "b": "text/json", "c": "application/json;charset=UTF-8"} {
		a := s.send("POST", "/submit-job", "\uFEFF"+`{"jobName":"`+name+`","type":"echo","settings":{}}`, "x-api-key", s.ann, "Content-Type", declared)
		if a.status != 200 {
			t.Errorf("%s: %d %s", declared, a.status, a.body)
		}
	}
}

func TestEveryBodyMustBeJSONWithinTheLimit(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxBody, with.options.MaxBatchBody = 100, 200 })
	long := `{"a":"` + strings.Repeat("x", 300) + `"}`
	for _, c := range calls() {
		if !c.takesBody() {
			continue
		}
		for _, declared := range [][]string{
			{},
			{"Content-Type", "text/plain"},
			{"Content-Type", "application/x-www-form-urlencoded"},
			{"Content-Type", "application/json; charset=latin1"},
			{"Content-Type", "application/json", "Content-Encoding", "gzip"},
		} {
			a := s.send(c.method, c.path, "{}", append(declared, "x-api-key", s.root)...)
			if a.status != 415 || a.code() != "UNSUPPORTED_MEDIA_TYPE" {
				t.Errorf("%v declared as %v: %d %s", c, declared, a.status, a.body)
			}
		}
		s.refused(s.root, 413, "BODY_TOO_LARGE", c.method, c.path, long)
		r := s.request(c.method, c.path, "")
		r.Header.Set("x-api-key", s.root)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("1")), -1
		same(t, fmt.Sprintf("%v with a byte of no type in chunks", c), s.do(r).status, 415)
		if a := s.chunked(c, long); a.status != 413 || a.code() != "BODY_TOO_LARGE" {
			t.Errorf("%v with a long body in chunks: %d %s", c, a.status, a.body)
		}
	}
}

func TestEveryRouteAnswersStoreErrors(t *testing.T) {
	s := start(t)
	internal := fault.Errorf(fault.Internal, "the disk says secret-detail")
	busy := fault.Errorf(fault.Unavailable, "The service is stopping; send the request again.")
	for _, c := range calls() {
		s.store.reading.Store(&internal)
		a := s.as(s.root, c.method, c.path, "")
		id := a.header.Get("X-Request-Id")
		if a.status != 500 || a.code() != "INTERNAL" || strings.Contains(a.body, "secret-detail") || !strings.Contains(a.body, id) {
			t.Errorf("%v: %d %s", c, a.status, a.body)
		}
		contains(t, s.log.String(), "secret-detail", id)
		s.store.reading.Store(&busy)
		a = s.as(s.root, c.method, c.path, "")
		if a.status != 503 || a.code() != "UNAVAILABLE" || a.header.Get("Retry-After") == "" {
			t.Errorf("%v: %d %s", c, a.status, a.body)
		}
		s.store.reading.Store(nil)
	}
}
