package e2e

import (
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestDrainedServiceStartsNothingUntilResumed also drains a stopped service, and kills a
// drained one.
func TestDrainedServiceStartsNothingUntilResumed(t *testing.T) {
	t.Parallel()
	s := shellServer(t, noSandbox)
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("runs", "shell", script(open.wait()))
	u.running("runs")
	if _, said, code := s.run("drain", "--reason", "a new kernel", "--data", s.data()); code != 0 || !strings.Contains(said, "molrun resume") {
		t.Fatalf("drain: %d %s", code, said)
	}
	u.submit("waits", "shell", script("true"))
	waits := func(why string) {
		t.Helper()
		s.eventually("the job shows why it waits", func() bool {
			j := u.job("waits")
			if j.Status != "QUEUED" {
				t.Fatalf("the job is %s", j.Status)
			}
			return strings.Contains(j.StatusReason, why)
		})
	}
	waits("the operator paused the queue")
	waits("a new kernel")
	must.Contain(t, "readyz", string(u.do("GET", "/readyz", nil).want(200).body), `"drained":"the queue has been paused since 20`)
	open.open(t) // jobs that are already running finish
	u.completed("runs")
	s.kill()
	s.start()
	waits("a new kernel")
	s.stop()
	s.ok("resume", "--data", s.data())
	s.ok("drain", "--data", s.data())
	s.start()
	waits("the operator paused the queue")
	s.ok("resume", "--data", s.data())
	u.completed("waits")
	if _, said, code := s.run("drain", "--reason", "two\nlines", "--data", s.data()); code == 0 || !strings.Contains(said, "reason") {
		t.Errorf("a reason of two lines: %d %s", code, said)
	}
}
