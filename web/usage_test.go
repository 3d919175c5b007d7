package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"molrun/app/job/usage"
)

// usageOf returns the report that a caller gets.
func (s *service) usageOf(key, query string) (r usage.Report) {
	s.t.Helper()
	a := s.as(key, "GET", "/usage?"+query, "")
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != 200 {
		s.t.Fatalf("%s: %d %s: %v", query, a.status, a.body, err)
	}
	return r
}

// ran returns who or what the rows stand for, and what ended.
func ran(r usage.Report) (rows []string) {
	for _, row := range append(r.Rows, r.Total) {
		rows = append(rows, fmt.Sprintf("%s%s: %d completed, %d failed, %d attempts, %d bytes, %d uploads of %d",
			row.User, row.Type, row.Completed, row.Failed, row.Attempts, row.ResultBytes, row.Uploads, row.UploadBytes))
	}
	return rows
}

func TestUsageIsReportedByUserTypeAndDay(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"out.txt": "four"})
	s.as(s.bob, "POST", "/submit-job", `{"jobName":"c","type":"echo","settings":{}}`)
	s.run("c", nil)
	s.upload("three.pdb", "END")
	ann := ": 1 completed, 0 failed, 1 attempts, 4 bytes, 1 uploads of 3"
	bob := "bob@lab.example: 0 completed, 1 failed, 1 attempts, 0 bytes, 0 uploads of 0"
	total := ": 1 completed, 1 failed, 2 attempts, 4 bytes, 1 uploads of 3"
	same(t, "ann's", ran(s.usageOf(s.ann, "")), []string{"ann@lab.example" + ann, ann})
	same(t, "the admin's", ran(s.usageOf(s.root, "by=user")), []string{"ann@lab.example" + ann, bob, total})
	same(t, "by type", ran(s.usageOf(s.root, "by=type")), []string{
		": 0 completed, 0 failed, 0 attempts, 0 bytes, 1 uploads of 3", "echo: 1 completed, 1 failed, 2 attempts, 4 bytes, 0 uploads of 0", total,
	})
	days := s.usageOf(s.root, "by=day")
	if last := days.Rows[len(days.Rows)-1]; last.Day > time.Now().UTC().Format(time.DateOnly) || days.Until < last.Day {
		t.Errorf("by day: %+v", days)
	}
	same(t, "before", len(s.usageOf(s.root, "until=2026-01-01").Rows), 0)
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
