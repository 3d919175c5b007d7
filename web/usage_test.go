package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"molrun/app/job/usage"
)

// usageOf returns a caller's usage report.
func (s *service) usageOf(key, query string) (r usage.Report) {
	s.t.Helper()
	a := s.as(key, "GET", "/usage?"+query, "")
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != 200 {
		s.t.Fatalf("%s: %d %s: %v", query, a.status, a.body, err)
	}
	return r
}

func TestUsageIsReportedByUserTypeAndDay(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"out.txt": "four"})
	s.as(s.bob, "POST", "/submit-job", `{"jobName":"c","type":"echo","settings":{}}`)
	s.run("c", nil)
	s.upload("three.pdb", "END")
	rows := func(key, query string) (rows []string) {
		for _, r := range s.usageOf(key, query).Rows {
			rows = append(rows, fmt.Sprintf("%s%s %d %d %d %d %d %d", r.User, r.Type, r.Completed, r.Failed, r.Attempts, r.ResultBytes, r.Uploads, r.UploadBytes))
		}
		return rows
	}
	const ann, bob = "ann@lab.example 1 0 1 4 1 3", "bob@lab.example 0 1 1 0 0 0"
	same(t, "ann's", rows(s.ann, ""), []string{ann})
	same(t, "the admin's", rows(s.root, "by=user"), []string{ann, bob})
	same(t, "by type", rows(s.root, "by=type"), []string{" 0 0 0 0 1 3", "echo 1 1 2 4 0 0"})
	days := s.usageOf(s.root, "by=day")
	if last := days.Rows[len(days.Rows)-1]; last.Day > time.Now().UTC().Format(time.DateOnly) || days.Until < last.Day {
		t.Errorf("by day: %+v", days)
	}
	same(t, "before", len(rows(s.root, "until=2026-01-01")), 0)
}

func TestUsageAsCSV(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"out.txt": "four"})
	for name, a := range map[string]answer{
		"asked by format": s.want(200, "GET", "/usage?format=csv", ""),
		"accepted":        s.send("GET", "/usage", "", "x-api-key", s.ann, "Accept", "text/csv"),
	} {
		lines := strings.Split(a.body, "\n")
		same(t, name, []string{a.header.Get("Content-Type"), lines[0], lines[1]}, []string{
			"text/csv; charset=utf-8; header=present",
			"organization,user,type,day,completed,failed,attempts,runSeconds,cpuSeconds,cpuSecondsBooked,gpuSeconds,resultBytes,uploads,uploadBytes",
			",ann@lab.example,,,1,0,1,0,0,0,0,4,0,0",
		})
	}
}

func TestFaultsOfUsage(t *testing.T) {
	s := start(t)
	for query, want := range map[string][]string{
		"by=organization&since=x&organization=lab":  {"query.by value", "query.since value", "query.organization unknown"},
		"since=2026-02-01&until=2026-02-01":         {"query.since value"},
		"since=2025-01-01&until=2026-02-06":         {"query.since value"}, // 401 days
		"since=9999-01-01":                          {"query.since value"},
		"since=2026-02-01T23:00:00Z&until=1970&x=1": {"query.until value", "query.x unknown"},
	} {
		a := s.as(s.root, "GET", "/usage?"+query, "")
		got := a.faults(t)
		if a.status != 422 || len(got) != len(want) {
			t.Errorf("%s: %d, faults %q, want %q", query, a.status, got, want)
		}
	}
	for query, want := range map[string][2]string{
		"since=2025-01-01&until=2026-02-05":                     {"2025-01-01", "2026-02-04"}, // 400 days
		"since=2026-02-01T23:00:00Z&until=2026-02-02T01:00:00Z": {"2026-02-01", "2026-02-02"},
		"until=2026-02-01": {"2026-01-02", "2026-01-31"},
	} {
		r := s.usageOf(s.ann, query)
		same(t, query, [2]string{r.Since, r.Until}, want)
	}
}
