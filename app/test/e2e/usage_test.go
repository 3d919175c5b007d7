package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestUsageCountsEachAttemptOnce runs real processes, kills the service while they run and
// after they have ended, and compares with the records, also of jobs that are deleted then.
func TestUsageCountsEachAttemptOnce(t *testing.T) {
	t.Parallel()
	s := shellServer(t, noSandbox)
	u := s.user("lab", "ann@lab.example")
	var runSeconds, cpuSeconds float64
	completed, failed := 0, 0
	count := func(r record) {
		t.Helper()
		runSeconds, cpuSeconds = runSeconds+r.Metrics.RunSeconds, cpuSeconds+r.Metrics.CPUSeconds
		switch r.Status {
		case "COMPLETED":
			completed++
		case "FAILED":
			failed++
		}
	}
	same := func(when string) {
		t.Helper()
		var report struct {
			Total struct {
				Completed, Failed, Attempts              int
				RunSeconds, CPUSeconds, CPUSecondsBooked float64
				GPUSeconds                               float64
				ResultBytes, Uploads, UploadBytes        int64
			}
		}
		u.do("GET", "/usage?by=day", nil).want(200).into(&report)
		got := report.Total
		if got.Completed != completed || got.Failed != failed || got.Attempts != completed+failed ||
			math.Abs(got.RunSeconds-runSeconds) > 1e-6 || math.Abs(got.CPUSeconds-cpuSeconds) > 1e-6 || got.CPUSecondsBooked != got.RunSeconds {
			t.Errorf("%s: %+v; the records say %d completed, %d failed, %g s, %g s of CPU", when, got, completed, failed, runSeconds, cpuSeconds)
		}
	}
	same("before anything")
	for i := range 2 {
		open := s.gate(fmt.Sprintf("go-%d", i))
		running, failing := fmt.Sprintf("runs-%d", i), fmt.Sprintf("fails-%d", i)
		u.submit(running, "shell", script(open.wait()+"; echo done > $OUT/done.txt || true"))
		u.running(running)
		s.kill()
		open.open(t) // it ends while nobody looks
		s.start()
		count(u.finished(running))
		u.submit(failing, "shell", script("exit 3"))
		count(u.finished(failing))
		s.kill()
		s.start()
		same("after a restart")
		u.do("POST", "/jobs/"+failing+"/retry", nil).want(200)
		count(u.until(failing, "it has failed again", func(r record) bool { return r.Status == "FAILED" && r.Attempts == 2 }))
		u.do("DELETE", "/jobs/"+failing, nil).want(204)
		same("after a retry and a deletion")
	}
	u.submit("stopped", "shell", script("sleep 1000"))
	u.running("stopped")
	u.do("POST", "/jobs/stopped/cancel", nil).want(200)
	count(u.finished("stopped"))
	same("after a cancellation")

	for _, online := range []bool{true, false} {
		if !online {
			s.stop()
		}
		var report struct {
			Rows []struct {
				Organization, User string
				Completed, Failed  int
			}
		}
		if err := json.Unmarshal([]byte(s.ok("usage", "--by", "user", "--organization", "lab", "--json")), &report); err != nil {
			t.Fatal(err)
		}
		if len(report.Rows) != 1 || report.Rows[0].User != "ann@lab.example" || report.Rows[0].Completed != completed {
			t.Errorf("online %v: %+v", online, report)
		}
		table, csv := s.ok("usage"), s.ok("usage", "--by", "type", "--csv")
		if !strings.Contains(table, "ORGANIZATION") || !strings.Contains(table, "\nlab ") || !strings.Contains(table, "\nall ") || !strings.Contains(csv, "\n,,shell,,2,") {
			t.Errorf("online %v:\n%s\n%s", online, table, csv)
		}
	}
	s.ok("check")
	s.fails(exitUsage, "--by: use organization, user, type, day", "usage", "--by", "age")
}
