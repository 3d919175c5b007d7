package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends only the head of a request, unless a header brings the body, and
// returns the response, which must come before the body.
func (u user) raw(method, path string, header ...string) *http.Response {
	u.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(u.base, "http://"))
	must(u.t, err)
	u.t.Cleanup(func() { conn.Close() })
	must(u.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: molrun\r\nx-api-key: %s\r\n%s\r\n\r\n", method, path, u.key, strings.Join(header, "\r\n"))
	must(u.t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(u.t, err)
	u.t.Cleanup(func() { response.Body.Close() })
	return response
}

// TestRequestsOfTwoLengthsEndTheConnection sends requests with Content-Length and
// Transfer-Encoding to a route, a link and an unknown path.
func TestRequestsOfTwoLengthsEndTheConnection(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	var grant struct{ UploadURL string }
	u.do("PUT", "/upload/a.txt", nil).want(200).into(&grant)
	const body = "\r\n2\r\n{}\r\n0\r\n\r\n" // after the empty line
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/validate-job", 200}, {"POST", "/nothing", 404}, {"PUT", strings.TrimPrefix(grant.UploadURL, u.base), 200},
	} {
		chunked := "Content-Type: application/json\r\nTransfer-Encoding: chunked"
		if strings.HasPrefix(tt.path, "/blobs/") {
			chunked = "Transfer-Encoding: chunked"
		}
		if r := u.raw(tt.method, tt.path, chunked+"\r\n"+body); r.StatusCode != tt.status || r.Close {
			t.Errorf("%s, chunked: status %d, closes %v; want %d on a connection that stays", tt.path, r.StatusCode, r.Close, tt.status)
		}
		if r := u.raw(tt.method, tt.path, "Content-Length: 2\r\n"+chunked+"\r\n"+body); r.StatusCode != tt.status || !r.Close {
			t.Errorf("%s, with a length too: status %d, closes %v; want %d and the end of the connection", tt.path, r.StatusCode, r.Close, tt.status)
		}
	}
}

func TestUnknownMembersGetASuggestion(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	for _, tt := range []struct{ method, path, body, at, nearest string }{
		{"POST", "/submit-job", `{"jobname":"j","type":"shell","settings":{"script":"true"}}`, "body.jobname", "jobName"},
		{"POST", "/submit-job", jobBody("j", `{"script":"true","cpu":1}`), "body.settings.cpu", "cpus"},
		{"POST", "/submit-job", `{"jobName":"j","type":"shll","settings":{}}`, "body.type", "shell"},
		{"POST", "/submit-batch", batchBody("b", "shell", script("true"), `{"scirpt":"true"}`), "body.settings.1.scirpt", "script"},
		{"POST", "/submit-batch", `{"batchNam":"b","type":"shell","settings":[]}`, "body.batchNam", "batchName"},
		{"POST", "/result", `{"jobName":"j","filename":"a"}`, "body.filename", "fileName"},
		{"POST", "/upload/x/complete", `{"sise":1}`, "body.sise", "size"},
		{"GET", "/jobs?includeSubjob=true", "", "query.includeSubjob", "includeSubjobs"},
		{"GET", "/jobs?organisation=true", "", "query.organisation", "organization"},
		{"GET", "/jobs/j?wiat=1s", "", "query.wiat", "wait"},
		{"GET", "/jobs/j/logs?ofset=1", "", "query.ofset", "offset"},
		{"GET", "/files?foldr=a", "", "query.foldr", "folder"},
		{"GET", "/algorithms/shell?versoin=1", "", "query.versoin", "version"},
		{"PUT", "/upload/a.txt?foldre=a", "", "query.foldre", "folder"},
	} {
		var body any
		if tt.body != "" {
			body = tt.body
		}
		if msg := u.do(tt.method, tt.path, body).messages()[tt.at]; !strings.Contains(msg, `did you mean "`+tt.nearest+`"?`) {
			t.Errorf("%s %s %s: %q at %s, want the suggestion %q", tt.method, tt.path, tt.body, msg, tt.at, tt.nearest)
		}
	}
}

func TestBodiesAreStrictJSON(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	nested := func(depth int) string { // depth of the whole body
		return `{"jobName":"j","type":"shell","settings":{"script":` + strings.Repeat("[", depth-2) + strings.Repeat("]", depth-2) + `}}`
	}
	number := func(text string) string { return jobBody("j", `{"script":"true","cpus":`+text+`}`) }
	for _, tt := range []struct{ name, body, at string }{
		{"not JSON", `jobName=j`, "body"},
		{"a truncated document", `{"jobName":"j"`, "body"},
		{"two documents", jobBody("j", script("true")) + "{}", "body"},
		{"an array", `[]`, "body"},
		{"nothing", ``, "body"},
		{"invalid UTF-8", "{\"jobName\":\"\xff\"}", "body"},
		{"a duplicate member", `{"jobName":"j","jobName":"j","type":"shell","settings":{"script":"true"}}`, "body.jobName"},
		{"a duplicate setting", jobBody("j", `{"script":"a","script":"a"}`), "body.settings.script"},
		{"a duplicate setting, escaped", jobBody("j", `{"script":"a","scr\u0069pt":"a"}`), "body.settings.script"},
		{"depth 65", nested(65), "body"},
		{"depth 100,000", nested(100_000), "body"},
		{"a number of 65 characters", number("1." + strings.Repeat("0", 63)), "body.settings.cpus"},
		{"a huge exponent", number("1e10000000"), "body.settings.cpus"},
		{"a number out of range", number("1e400"), "body.settings.cpus"},
		{"an integer above 2^53", number("9007199254740993"), "body.settings.cpus"},
		{"an integer below -2^53", `{"jobName":"j","type":"shell","settings":{"script":"true"},"priority":-9007199254740993}`, "body.priority"},
		{"a fraction for an integer", number("1.5"), "body.settings.cpus"},
	} {
		got := u.do("POST", "/submit-job", tt.body).messages()
		found := false
		for at := range got {
			found = found || at == tt.at || strings.HasPrefix(at, tt.at+".")
		}
		if !found {
			t.Errorf("%s: no fault at %s in %q", tt.name, tt.at, got)
		}
	}
	if at := u.do("POST", "/submit-job", nested(64)).messages(); at["body.settings.script"] == "" {
		t.Errorf("depth 64 is refused: %q", at)
	}
	u.do("POST", "/submit-job", number("1."+strings.Repeat("0", 62))).want(200) // 64 characters
	u.do("POST", "/submit-job", "{\"jobName\":\"\xc3\xa9\\u00e9\",\"type\":\"shell\",\"settings\":{\"script\":\"true\"}}").want(200)
}

func TestOversizedBodiesAreRefusedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	for _, tt := range []struct {
		path   string
		length int
		status int
	}{
		{"/submit-job", 8 << 20, 100},
		{"/submit-job", 8<<20 + 1, 413},
		{"/validate-job", 8<<20 + 1, 413},
		{"/result", 8<<20 + 1, 413},
		{"/submit-batch", 8<<20 + 1, 100},
		{"/submit-batch", 64 << 20, 100},
		{"/submit-batch", 64<<20 + 1, 413},
	} {
		a := u.raw("POST", tt.path, "Content-Type: application/json", fmt.Sprint("Content-Length: ", tt.length), "Expect: 100-continue")
		if a.StatusCode != tt.status {
			t.Errorf("%s with %d bytes: status %d, want %d", tt.path, tt.length, a.StatusCode, tt.status)
		}
	}
	u.do("POST", "/submit-job", jobBody("large", script(": "+strings.Repeat("x", 8<<20)))).code(413, "BODY_TOO_LARGE")
}

func TestEveryResponseHasAUniqueRequestID(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u, anonymous := s.user("lab", "ann@lab.example"), user{s, ""}
	file := u.upload("in.txt", "0123456789")
	u.submit("j", "shell", script("echo a > out/a"))
	u.finished("j")
	link := u.linkTo(`{"jobName":"j","fileName":"a"}`).DownloadURL
	seen := map[string]string{}
	for _, tt := range []struct {
		by             user
		status         int
		method, target string
		header         []string
	}{
		{u, 200, "GET", "/jobs", nil},
		{u, 200, "HEAD", "/jobs", nil},
		{u, 200, "GET", "/jobs", []string{"X-Request-Id", "chosen-by-the-client"}},
		{u, 200, "GET", "/jobs/j/logs", nil},
		{u, 200, "GET", link, nil},
		{u, 206, "GET", link, []string{"Range", "bytes=0-0"}},
		{u, 416, "GET", link, []string{"Range", "bytes=9-"}},
		{u, 405, "DELETE", link, nil},
		{u, 403, "GET", link + "x", nil},
		{u, 204, "DELETE", "/files/" + file, nil},
		{u, 404, "DELETE", "/files/" + file, nil},
		{u, 409, "POST", "/jobs/j/retry", nil},
		{u, 415, "POST", "/submit-job", []string{"Content-Type", "text/plain"}},
		{u, 422, "GET", "/jobs?limit=0", nil},
		{u, 404, "GET", "/none", nil},
		{u, 405, "PUT", "/jobs", nil},
		{anonymous, 401, "GET", "/jobs", nil},
		{anonymous, 200, "GET", "/healthz", nil},
		{anonymous, 200, "GET", "/readyz", nil},
		{anonymous, 200, "GET", "/version", nil},
		{anonymous, 200, "GET", "/metrics", nil},
		{anonymous, 200, "GET", "/openapi.yaml", nil},
	} {
		var body io.Reader
		if tt.status == 415 {
			body = strings.NewReader("text")
		}
		var sent any
		if body != nil {
			sent = body
		}
		a := tt.by.do(tt.method, tt.target, sent, tt.header...).want(tt.status)
		id := a.header.Get("X-Request-Id")
		if other, taken := seen[id]; id == "" || taken {
			t.Errorf("%s %s: request id %q, already used by %q", tt.method, tt.target, id, other)
		}
		seen[id] = tt.method + " " + tt.target
	}
	if seen["chosen-by-the-client"] != "" {
		t.Error("a client can choose the request id")
	}
}

func TestEveryRefusalIsAnErrorObjectThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s, open := blockedServer(t, "")
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	ann.submit("queued", "shell", script("true"))
	var grant struct{ FileID, UploadURL string }
	ann.do("PUT", "/upload/a.txt", nil).want(200).into(&grant)
	file := ann.upload("b.txt", "text")
	ann.submit("reader", "shell", script("cat in/input.txt", `,"input":"`+file+`"`))
	for _, tt := range []struct {
		by           user
		method, path string
		body         any
		status       int
		code, says   string
	}{
		{user{s, ""}, "GET", "/jobs", nil, 401, "UNAUTHORIZED", "molrun key create"},
		{bob, "POST", "/jobs/queued/cancel", nil, 403, "FORBIDDEN", "ann@lab.example"},
		{bob, "DELETE", "/files/" + file, nil, 403, "FORBIDDEN", "ann@lab.example"},
		{ann, "GET", grant.UploadURL, nil, 403, "LINK_INVALID", ""},
		{ann, "GET", "/jobs/none", nil, 404, "NOT_FOUND", "GET /jobs"},
		{ann, "GET", "/nothing", nil, 404, "NOT_FOUND", "openapi"},
		{ann, "PATCH", "/jobs", nil, 405, "METHOD_NOT_ALLOWED", "GET"},
		{ann, "POST", "/submit-job", jobBody("queued", script("false")), 409, "JOB_ALREADY_EXISTS", "jobName"},
		{ann, "POST", "/result", `{"jobName":"queued"}`, 409, "JOB_NOT_COMPLETED", "COMPLETED"},
		{ann, "DELETE", "/jobs/queued", nil, 409, "JOB_NOT_FINISHED", "cancel"},
		{ann, "POST", "/jobs/queued/retry", nil, 409, "JOB_NOT_FAILED", "FAILED"},
		{ann, "POST", "/upload/" + grant.FileID + "/complete", nil, 409, "UPLOAD_NOT_RECEIVED", "uploadUrl"},
		{ann, "DELETE", "/files/" + file, nil, 409, "FILE_IN_USE", "reader"},
		{ann, "POST", "/submit-job", strings.NewReader("{}"), 415, "UNSUPPORTED_MEDIA_TYPE", "application/json"},
	} {
		a := tt.by.do(tt.method, tt.path, tt.body)
		a.code(tt.status, tt.code)
		if !strings.Contains(string(a.body), tt.says) {
			t.Errorf("%s %s: %s does not mention %q", tt.method, tt.path, a.body, tt.says)
		}
	}
	open.open(t)
	ann.finished("queued")
	ann.do("POST", "/jobs/queued/retry", nil).code(409, "JOB_NOT_FAILED")
}
