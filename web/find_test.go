package web_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// found is a page of a listing.
type found struct {
	Jobs     []struct{ JobName, CreatedAt, CompletedAt string }
	StartKey string
	Count    any
}

func (s *service) find(query string) (f found) {
	s.t.Helper()
	must.OK(s.t, json.Unmarshal([]byte(s.want(200, "GET", "/jobs?"+query, "").body), &f))
	return f
}

// paged returns the names on all pages of a listing.
func (s *service) paged(query string) string {
	s.t.Helper()
	var names []string
	for next := ""; ; {
		page := s.find(query + next)
		names = append(names, strings.Fields(page.names())...)
		if page.StartKey == "" {
			return strings.Join(names, " ")
		}
		next = "&startKey=" + page.StartKey
	}
}

func (f found) names() string {
	var names []string
	for _, j := range f.Jobs {
		names = append(names, j.JobName)
	}
	return strings.Join(names, " ")
}

func TestListingsFindJobs(t *testing.T) {
	s := start(t)
	for _, j := range []struct{ name, labels string }{
		{"Dock-1", `"tags":{"target":"6LU7","round":"1"}`},
		{"dock-2", `"tags":{"target":"6LU7","round":"2"},"note":"Étude at 310 K"`},
		{"fold", `"note":"like DOCK-1"`},
		{"last", `"tags":{"url":"a:b"}`},
	} {
		s.want(200, "POST", "/submit-job", fmt.Sprintf(`{"jobName":%q,"type":"echo","settings":{},%s}`, j.name, j.labels))
		time.Sleep(2 * time.Millisecond) // times are shown in milliseconds
	}
	s.run("last", map[string]string{"out.txt": "text"})
	time.Sleep(2 * time.Millisecond) // times are shown in milliseconds
	s.run("Dock-1", map[string]string{"out.txt": "text"})
	s.want(200, "POST", "/jobs/last/pin", "")
	times := map[string]string{}
	for _, j := range s.find("").Jobs {
		times[j.JobName] = j.CreatedAt
	}
	ended := s.find("sort=completedAt").Jobs
	for _, tt := range []struct{ query, want string }{
		{"", "last fold dock-2 Dock-1"},
		{"order=asc", "Dock-1 dock-2 fold last"},
		{"sort=completedAt", "Dock-1 last"},
		{"sort=completedAt&order=asc", "last Dock-1"},
		{"sort=completedAt&status=FAILED&status=COMPLETED&search=LAST", "last"},
		{"sort=completedAt&status=QUEUED", ""},
		{"search=dock", "fold dock-2 Dock-1"},
		{"search=%C3%89TUDE", "dock-2"},
		{"search=target:6lu7", "dock-2 Dock-1"},
		{"search=absent", ""},
		{"tag=target:6LU7", "dock-2 Dock-1"},
		{"tag=target:6LU7&tag=round:1", "Dock-1"},
		{"tag=target:6LU7&tag=round:3", ""},
		{"tag=target:6LU", ""},
		{"tag=url:a:b", "last"},
		{"tag=target:6LU7&status=QUEUED&search=310", "dock-2"},
		{"status=QUEUED&status=COMPLETED", "last fold dock-2 Dock-1"},
		{"status=COMPLETED&algorithm=echo&jobEmail=ann@lab.example&organization=1", "last Dock-1"},
		{"jobName=fold&search=like", "fold"},
		{"jobName=fol", ""},
		{"jobName=FOLD", ""},
		{"algorithm=ech", ""},
		{"jobName=fold&tag=target:6LU7", ""},
		{"since=" + times["dock-2"], "last fold dock-2"},
		{"until=" + times["dock-2"], "Dock-1"},
		{"since=" + times["dock-2"] + "&until=" + times["last"] + "&order=asc", "dock-2 fold"},
		{"sort=completedAt&since=" + ended[0].CompletedAt, "Dock-1"},
		{"sort=completedAt&until=" + ended[0].CompletedAt, "last"},
		{"since=1970-01-02&until=9999-12-31", "last fold dock-2 Dock-1"},
	} {
		all := s.find(tt.query + "&count=true")
		same(t, tt.query, all.names(), tt.want)
		same(t, tt.query+" count", all.Count, any(float64(len(all.Jobs))))
		same(t, tt.query+" page by page", s.paged(tt.query+"&limit=1"), tt.want)
	}
	same(t, "a missing batch", s.find("batch=absent&count=1").Count, any(0.0))
}

func TestRowsAreFound(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{},{"steps":2},{"steps":3}],"tags":{"of":"batch"}}`)
	s.run("b-2", map[string]string{"out.txt": "text"})
	s.want(200, "PATCH", "/jobs/b-3", `{"note":"The best"}`)
	id := s.want(200, "GET", "/jobs/b", "").fields(t)["jobId"].(string)
	for query, want := range map[string]string{
		"batch=" + id:                            "b-3 b-2 b-1",
		"batch=b":                                "b-3 b-2 b-1",
		"batch=b&order=asc":                      "b-1 b-2 b-3",
		"batch=b&status=COMPLETED&status=QUEUED": "b-3 b-2 b-1",
		"batch=b&status=COMPLETED":               "b-2",
		"batch=b&search=best":                    "b-3",
		"batch=b&tag=of:batch":                   "",
		"tag=of:batch":                           "b",
		"jobName=b-2":                            "b-2",
		"batch=b&jobName=b-2":                    "b-2",
		"batch=b&jobName=b":                      "",
		"batch=b-2":                              "",
		"search=best":                            "",
		"organization=true&search=B&status=QUEUED": "",
	} {
		same(t, query, s.find(query+"&count=1").names(), want)
	}
}

func TestFaultyFiltersAreReportedTogether(t *testing.T) {
	s := start(t)
	many := strings.Repeat("&status=QUEUED", 21)
	for _, tt := range []struct {
		query  string
		faults []string
	}{
		{"search=&since=yesterday&until=1969-12-31&sort=name&order=up&count=2&tag=a&status=x", []string{
			"query.count type", "query.search value", "query.since value", "query.until value",
			"query.status value", "query.tag value", "query.sort value", "query.order value",
		}},
		{"tag=:a", []string{"query.tag value"}},
		{"tag=a:", []string{"query.tag value"}},
		{"tag=" + url.QueryEscape("\xff:a"), []string{"query.tag value"}},
		{"since=2026-11-20&since=2026-11-21", []string{"query.since value"}},
		{"status=QUEUED&status=", []string{"query.status value"}},
		{many[1:], []string{"query.status value"}},
		{"sort=completedAt&batch=b&limit=0", []string{"query.limit value", "query.sort value"}},
		{"sort=completedAt&jobName=b", []string{"query.sort value"}},
	} {
		same(t, tt.query, s.want(422, "GET", "/jobs?"+tt.query, "").faults(t), tt.faults)
	}
	s.submit("a")
	s.submit("b")
	key := s.find("limit=1").StartKey
	s.find("limit=7&includeSubjobs=true&startKey=" + key)
	for _, query := range []string{
		"search=a", "order=asc", "tag=a:b", "since=2000-01-01", "until=2100-01-01", "status=QUEUED",
		"organization=true", "jobEmail=bob@lab.example", "algorithm=echo", "jobName=a", "batch=a",
	} {
		same(t, query+" with a cursor", s.want(422, "GET", "/jobs?"+query+"&startKey="+key, "").faults(t), []string{"query.startKey value"})
	}
	same(t, "another list", s.want(422, "GET", "/files?startKey="+key, "").faults(t), []string{"query.startKey value"})
}

func TestSummaryCountsWhatAListingFinds(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.submit("b")
	s.run("b", map[string]string{"out.txt": "text"})
	s.want(200, "PATCH", "/jobs/b", `{"tags":{"k":"v"}}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"rows","type":"echo","settings":[{},{},{}]}`)
	s.run("rows-2", nil)
	s.wantAs(s.bob, 200, "POST", "/submit-job", `{"jobName":"c","type":"echo","settings":{}}`)
	counts := func(queued, running, completed, failed int) string {
		return fmt.Sprintf(`{"QUEUED":%d,"RUNNING":%d,"COMPLETED":%d,"FAILED":%d}`, queued, running, completed, failed)
	}
	ann := func(n int, c string) string {
		return fmt.Sprintf(`{"count":%d,"statuses":%s,"types":{"echo":%s},"users":{"ann@lab.example":%s}}`, n, c, c, c)
	}
	const nothing = `{"count":0,"statuses":{"QUEUED":0,"RUNNING":0,"COMPLETED":0,"FAILED":0},"types":{},"users":{}}`
	for query, want := range map[string]string{
		"":                                ann(3, counts(1, 1, 1, 0)),
		"?algorithm=echo":                 ann(3, counts(1, 1, 1, 0)),
		"?algorithm=other":                nothing,
		"?status=COMPLETED&status=QUEUED": ann(2, counts(1, 0, 1, 0)),
		"?tag=k:v":                        ann(1, counts(0, 0, 1, 0)),
		"?search=A&status=QUEUED":         ann(1, counts(1, 0, 0, 0)),
		"?jobName=a":                      ann(1, counts(1, 0, 0, 0)),
		"?since=1970-01-02":               ann(3, counts(1, 1, 1, 0)),
		"?until=1970-01-02":               nothing,
		"?batch=rows":                     ann(3, counts(2, 0, 0, 1)),
		"?batch=absent":                   nothing,
		"?organization=true": fmt.Sprintf(`{"count":4,"statuses":%s,"types":{"echo":%s},"users":{"ann@lab.example":%s,"bob@lab.example":%s}}`,
			counts(2, 1, 1, 0), counts(2, 1, 1, 0), counts(1, 1, 1, 0), counts(1, 0, 0, 0)),
	} {
		same(t, query, strings.TrimSpace(s.want(200, "GET", "/jobs/summary"+query, "").body), want)
		listed := s.want(200, "GET", "/jobs?count=true&"+strings.TrimPrefix(query, "?"), "").fields(t)["count"]
		if !strings.HasPrefix(want, fmt.Sprintf(`{"count":%v,`, listed)) {
			t.Errorf("%s: the listing counts %v", query, listed)
		}
	}
	same(t, "faults", s.want(422, "GET", "/jobs/summary?limit=1&status=x", "").faults(t), []string{"query.status value", "query.limit unknown"})
}

func TestJobNamedSummaryIsFound(t *testing.T) {
	s := start(t)
	s.submit("summary")
	for _, path := range []string{"/jobs/%73ummary", "/jobs/%73ummary?wait=1ms"} {
		same(t, path, s.want(200, "GET", path, "").fields(t)["jobName"], any("summary"))
	}
	s.want(200, "POST", "/jobs/summary/cancel", "")
	job, err := client.NewWith(s.url, s.ann, s.client.Transport).Job(t.Context(), "summary")
	if err != nil || job.Name != "summary" {
		t.Errorf("the client got %+v, %v", job, err)
	}
	s.want(204, "DELETE", "/jobs/summary", "")
}
