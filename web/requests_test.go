package web_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"molrun/app/test/must"
)

func TestQueriesOfListings(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b"} {
		s.want(200, "POST", "/submit-job", `{"jobName":"`+name+`","type":"echo","settings":{}}`)
	}
	key := s.want(200, "GET", "/jobs?limit=1", "").fields(t)["startKey"].(string)
	altered := key[:20] + flipped(key[20]) + key[21:]
	tests := []struct {
		query  string
		faults []string // nil means accepted
	}{
		{"", nil},
		{"limit=1", nil},
		{"limit=100&startKey=", nil},
		{"organization=TRUE&includeSubjobs=0", nil},
		{"organization=False", nil},
		{"status=QUEUED&algorithm=echo&jobEmail=ann@lab.example&batch=x&jobName=%F0%9F%A7%AC", nil},

		{"limit=0", []string{"query.limit value"}},
		{"limit=101", []string{"query.limit value"}},
		{"limit=-1", []string{"query.limit value"}},
		{"limit=99999999999999999999", []string{"query.limit value"}},
		{"limit=ten", []string{"query.limit type"}},
		{"limit=1.0", []string{"query.limit type"}},
		{"limit=", []string{"query.limit type"}},
		{"limit=1&limit=1", []string{"query.limit value"}},
		{"organization=yes", []string{"query.organization type"}},
		{"organization=", []string{"query.organization type"}},
		{"organization=true&organization=true", []string{"query.organization value"}},
		{"status=queued", []string{"query.status value"}},
		{"status=", []string{"query.status value"}},
		{"jobName=", []string{"query.jobName value"}},
		{"jobName=%ff", []string{"query.jobName value"}},
		{"startKey=abc", []string{"query.startKey value"}},
		{"startKey=%ff", []string{"query.startKey value"}},
		{"limit=0&startKey=abc", []string{"query.limit value", "query.startKey value"}},
		{"status=x&startKey=abc&more=1", []string{"query.status value", "query.more unknown", "query.startKey value"}},
		{"limit=0&startKey=" + altered, []string{"query.limit value", "query.startKey value"}},
		{"includeSubjobs=2&startKey=" + altered, []string{"query.includeSubjobs type", "query.startKey value"}},
		{"limit=0&startKey=" + key, []string{"query.limit value"}},
		{"status=x&startKey=" + key, []string{"query.status value"}}, // the key may be valid once the status is corrected
		{"statsu=QUEUED&startKey=" + altered, []string{"query.statsu unknown"}},
		{"startKey=abc&startKey=abc&limit=0", []string{"query.limit value", "query.startKey value"}},
		{"batch=%zz", []string{"query value"}},
		{"limit=1;status=QUEUED", []string{"query value"}},
		{"Limit=1", []string{"query.Limit unknown"}},
		{"%ff=1", []string{"query.� unknown"}},
		{"limit=0&organization=2&status=x&more=1", []string{"query.limit value", "query.organization type", "query.status value", "query.more unknown"}},
		{"jobName=" + strings.Repeat("x", 17_000), []string{"query value"}},
	}
	for _, tt := range tests {
		status := 200
		if tt.faults != nil {
			status = 422
		}
		a := s.as(s.ann, "GET", "/jobs?"+tt.query, "")
		if a.status != status {
			t.Errorf("%.80s: %d %s", tt.query, a.status, a.body)
			continue
		}
		if status == 422 {
			same(t, tt.query[:min(80, len(tt.query))], a.faults(t), tt.faults)
		}
	}
}

func TestListingHasFiftyJobsByDefault(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[`+strings.Repeat("{},", 100)+`{}]}`)
	for limit, want := range map[string]int{"": 50, "&limit=100": 100} {
		if page := s.find("batch=b" + limit); len(page.Jobs) != want || page.StartKey == "" {
			t.Errorf("%q: %d jobs and the cursor %q, want %d and one", limit, len(page.Jobs), page.StartKey, want)
		}
	}
}

func TestUnknownNamesGetASuggestion(t *testing.T) {
	s := start(t)
	s.want(422, "GET", "/jobs?limt=1", "").has(t, `did you mean \"limit\"?`)
	s.want(422, "GET", "/jobs?zzzzzzzzzzzz=1", "").has(t, "known are algorithm, batch,")
	s.want(422, "GET", "/algorithms?x=1", "").has(t, "none are allowed here")
	for _, tt := range []struct{ path, body, nearest string }{
		{"/result", `{"jobname":"a"}`, "jobName"},
		{"/submit-job", `{"jobName":"a","type":"ecco","settings":{}}`, "echo"},
		{"/submit-job", `{"jobName":"a","type":"echo","settings":{"stepz":1}}`, "steps"},
		{"/submit-batch", `{"batchName":"b","type":"echo","settings":[{},{"stepz":1}]}`, "steps"},
	} {
		s.want(422, "POST", tt.path, tt.body).has(t, `did you mean \"`+tt.nearest+`\"?`)
	}
}

func TestAllFaultsOfASubmissionAreReportedTogether(t *testing.T) {
	s := start(t)
	tests := []struct {
		name, path, body string
		faults           []string
	}{
		{"nothing", "/submit-job", ``, []string{"body missing"}},
		{"null", "/submit-job", `null`, []string{"body type"}},
		{"empty", "/submit-job", `{}`, []string{"body.jobName missing", "body.type missing", "body.settings missing"}},
		{"null members", "/submit-job", `{"jobName":null,"type":null,"settings":null}`, []string{"body.jobName type", "body.type type", "body.settings type"}},
		{"wrong types", "/submit-job", `{"jobName":1,"type":[],"settings":"x","version":true,"priority":"1","maxRuntimeSeconds":1.5}`, []string{
			"body.jobName type", "body.type type", "body.settings type", "body.version type", "body.priority type", "body.maxRuntimeSeconds type",
		}},
		{"shape and rules", "/submit-job", `{"jobName":"a/b","type":"echo","settings":{"steps":0,"stepz":1},"prio":1,"maxRuntimeSeconds":0}`, []string{
			"body.jobName value", "body.maxRuntimeSeconds value", "body.prio unknown", "body.settings.steps value", "body.settings.stepz unknown",
		}},
		{"priority", "/submit-job", `{"jobName":"a","type":"echo","settings":{},"priority":11}`, []string{"body.priority value"}},
		{"beyond 2^53", "/submit-job", `{"jobName":"a","type":"echo","settings":{},"maxRuntimeSeconds":9007199254740993}`, []string{"body.maxRuntimeSeconds type"}},
		{"an unknown algorithm", "/submit-job", `{"jobName":"a","type":"ecco","settings":{}}`, []string{"body.type unknown"}},
		{"an unknown version", "/submit-job", `{"jobName":"a","type":"echo","settings":{},"version":"9"}`, []string{"body.version unknown"}},
		{"query and body", "/submit-job?dry=1", `{"jobName":1,"type":"echo","settings":{}}`, []string{"query.dry unknown", "body.jobName type"}},
		{"a name twice", "/submit-job", `{"jobName":"a","jobName":"a","type":"echo","settings":{}}`, []string{"body.jobName duplicate"}},
		{"a number without end", "/submit-job", `{"jobName":"a","type":"echo","settings":{"steps":1e10000000}}`, []string{"body.settings.steps value"}},

		{"batch, nothing", "/submit-batch", `{}`, []string{"body.batchName missing", "body.type missing", "body.settings missing"}},
		{"batch, no rows", "/submit-batch", `{"batchName":"b","type":"echo","settings":[]}`, []string{"body.settings value"}},
		{"batch, bad rows", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{},1,{"steps":0},null],"jobNames":["x",2,"y","z"]}`, []string{
			"body.settings.1 type", "body.settings.3 type", "body.jobNames.1 type", "body.settings.2.steps value",
		}},
		{"batch, more bad rows", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{},{"structure":"inputs/none.pdb"},{"stepz":1}]}`, []string{
			"body.settings.1.structure file", "body.settings.2.stepz unknown",
		}},
		{"batch, too few names", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{},{}],"jobNames":["x"]}`, []string{"body.jobNames value"}},
		{"batch, too many names", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}],"jobNames":["x","y"]}`, []string{"body.jobNames value"}},
		{"batch, its own name", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}],"jobNames":["b"]}`, []string{"body.jobNames.0 taken"}},
		{"batch, no list of names", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}],"jobNames":"x"}`, []string{"body.jobNames type"}},
		{"batch, bad names", "/submit-batch", `{"batchName":"a\u200bb","type":"echo","settings":[{},{}],"jobNames":["a/b",""]}`, []string{
			"body.batchName value", "body.jobNames.0 value", "body.jobNames.1 value",
		}},
		{"batch, names", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{},{}],"jobNames":["x","x"],"more":1}`, []string{"body.jobNames.1 taken", "body.more unknown"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := s.as(s.ann, "POST", tt.path, tt.body)
			if a.status != 422 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			got := a.faults(t)
			slices.Sort(got)
			slices.Sort(tt.faults)
			same(t, tt.body, got, tt.faults)
			if tt.path == "/submit-job" && strings.HasPrefix(tt.body, "{") && !strings.Contains(tt.name, "twice") && !strings.Contains(tt.name, "without end") {
				v := s.want(200, "POST", "/validate-job", tt.body)
				got := v.faults(t)
				slices.Sort(got)
				same(t, "validation", got, tt.faults)
			}
		})
	}
}

func TestOptionalMembersMayBeNull(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{},"version":null,"priority":null,"maxRuntimeSeconds":null}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}],"jobNames":null}`)
	s.want(409, "POST", "/result", `{"jobName":"a","fileName":null,"partial":null}`)
}

func TestIntegersMayBeWrittenInAnyForm(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{},"priority":-1e0,"maxRuntimeSeconds":6.0e1}`)
	j := s.want(200, "GET", "/jobs/a", "").fields(t)
	same(t, "priority, maxRuntimeSeconds", []any{j["priority"], j["maxRuntimeSeconds"]}, []any{-1.0, 60.0})
}

func TestNamesInPathsAreDecodedOnce(t *testing.T) {
	s := start(t)
	for _, name := range []string{"plain", "a b", "100%", "%25", "a+b", "50%2F50", "蛋白质", "é?#&=;", `"'<>`, "..a", "cancel"} {
		quoted := fmt.Sprintf("%q", name)
		s.want(200, "POST", "/submit-job", `{"jobName":`+quoted+`,"type":"echo","settings":{}}`)
		a := s.want(200, "GET", "/jobs/"+escaped(name), "")
		same(t, "jobName", a.fields(t)["jobName"], any(name))
		s.want(200, "POST", "/jobs/"+escaped(name)+"/cancel", "")
	}
	for path, status := range map[string]int{
		"/jobs/a%2Fb": 404, "/jobs/%2e%2e": 404, "/jobs/%00": 404, "/jobs/%252525": 404, "/jobs/%FF": 422,
	} {
		s.want(status, "GET", path, "")
	}
}

func TestTruncatedBodyIsRejected(t *testing.T) {
	s := start(t)
	r, err := http.NewRequest("POST", s.url+"/submit-job", io.MultiReader(strings.NewReader(`{"jobName":`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	must.OK(t, err)
	r.ContentLength = 100
	r.Header.Set("x-api-key", s.ann)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil { // the client may report its own error first
		same(t, "status", resp.StatusCode, 422)
		resp.Body.Close()
	}
	s.want(200, "GET", "/jobs", "") // other requests still work
}
