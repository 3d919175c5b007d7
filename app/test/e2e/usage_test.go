package e2e

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestUsageCountsEachAttemptOnce kills the service while a process runs. The process ends
// before the service restarts. The usage reported over HTTP, by the command and offline
// must be the same. Package usage tests the counting itself.
func TestUsageCountsEachAttemptOnce(t *testing.T) {
	t.Parallel()
	s := shellServer(t, noSandbox)
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("runs", "shell", script(open.wait()))
	u.running("runs")
	s.kill()
	open.open(t)
	s.start()
	seconds := u.finished("runs").Metrics.RunSeconds
	u.submit("fails", "shell", script("exit 3"))
	seconds += u.finished("fails").Metrics.RunSeconds
	u.do("DELETE", "/jobs/fails", nil).want(204)
	var report struct {
		Total struct {
			Completed, Failed, Attempts  int
			RunSeconds, CPUSecondsBooked float64
		}
	}
	u.do("GET", "/usage?by=day", nil).want(200).into(&report)
	if got := report.Total; got.Completed != 1 || got.Failed != 1 || got.Attempts != 2 || math.Abs(got.RunSeconds-seconds) > 1e-6 || got.CPUSecondsBooked != got.RunSeconds {
		t.Errorf("%+v; the records say %g s", got, seconds)
	}
	for _, online := range []bool{true, false} {
		if !online {
			s.stop()
		}
		var report struct {
			Rows []struct {
				User      string
				Completed int
			}
		}
		must.OK(t, json.Unmarshal([]byte(s.ok("usage", "--by", "user", "--organization", "lab", "--json")), &report))
		if len(report.Rows) != 1 || report.Rows[0].User != "ann@lab.example" || report.Rows[0].Completed != 1 {
			t.Errorf("online %v: %+v", online, report)
		}
		table, csv := s.ok("usage"), s.ok("usage", "--by", "type", "--csv")
		if !strings.Contains(table, "ORGANIZATION") || !strings.Contains(table, "\nlab ") || !strings.Contains(table, "\nall ") || !strings.Contains(csv, "\n,,shell,,1,") {
			t.Errorf("online %v:\n%s\n%s", online, table, csv)
		}
	}
	s.fails(exitUsage, "--by: use organization, user, type, day", "usage", "--by", "age")
}
