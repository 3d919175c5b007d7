package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// setConfig replaces the quotas of a server that is down.
func (s *instance) setConfig(old, now string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "config.toml")
	text := must.Read(s.t, path)
	if !strings.Contains(text, old) {
		s.t.Fatalf("the configuration has no %q", old)
	}
	must.OK(s.t, os.WriteFile(path, []byte(strings.Replace(text, old, now, 1)), 0o600))
}

// TestRunningJobsKeepToLimits runs real processes of users with limits, lowers the limits
// and restarts the service.
func TestRunningJobsKeepToLimits(t *testing.T) {
	t.Parallel()
	const limits = "[quota]\ncpus = 5\n[user_quota]\ncpus = 3\ngpus = 1\n[organizations.lab.users.\"bob@lab.example\"]\nquota = { cpus = 4 }\n"
	s := shellServer(t, "[runner]\ncpus = 16\nmemory = \"16GiB\"\ngpus = \"0,1\"\n"+limits)
	ann, bob, eve := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example"), s.user("firm", "ann@lab.example")
	open, later := s.gate("go"), s.gate("later")
	wait := func(cpus int) string { return script(open.wait(), fmt.Sprintf(`,"cpus":%d`, cpus)) }
	waits := func(u user, name, why string) {
		t.Helper()
		j := u.until(name, "waiting for a limit", func(r record) bool {
			if r.Status != "QUEUED" {
				t.Fatalf("%s is %s", name, r.Status)
			}
			return strings.Contains(r.StatusReason, why)
		})
		var shown struct{ Queue struct{ BlockedBy string } }
		u.do("GET", "/jobs/"+name, nil).want(200).into(&shown)
		if shown.Queue.BlockedBy != "user-limit" {
			t.Errorf("%s waits: %q, blocked by %q", name, j.StatusReason, shown.Queue.BlockedBy)
		}
	}
	ann.submit("a1", "shell", wait(2))
	ann.submit("a2", "shell", wait(2))
	ann.running("a1")
	waits(ann, "a2", `user "ann@lab.example" may have 3 CPUs in use at once, and has 2`)
	bob.submit("b1", "shell", wait(3))
	bob.running("b1")
	bob.submit("b2", "shell", wait(1))
	waits(bob, "b2", `organization "lab" may have 5 CPUs in use at once, and has 5`)
	eve.submit("e1", "shell", wait(3))
	eve.running("e1")

	ann.do("POST", "/submit-job", jobBody("large", wait(4))).detail("body.settings")

	bob.submit("b3", "shell", script(later.wait(), `,"cpus":4`))
	s.stop()
	s.setConfig(limits, "[user_quota]\ncpus = 1\n")
	s.start()
	for u, name := range map[user]string{ann: "a1", bob: "b1", eve: "e1"} {
		if j := u.job(name); j.Status != "RUNNING" {
			t.Errorf("%s is %s after the limits were lowered", name, j.Status)
		}
	}
	waits(ann, "a2", `the job needs 2 CPUs, and user "ann@lab.example" may have only 1 CPU in use at once`)
	waits(bob, "b2", `user "bob@lab.example" may have 1 CPU in use at once, and has 3`)
	open.open(t)
	bob.finished("b2")
	waits(bob, "b3", "needs 4 CPUs")
	s.stop()
	s.setConfig("[user_quota]\ncpus = 1\n", "")
	s.start()
	later.open(t)
	for u, name := range map[user]string{ann: "a2", bob: "b3"} {
		u.completed(name)
	}
}

func TestJobsBeyondTheQuotaAreRefusedUntilSomeHaveStarted(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 1\n[quota]\nqueued = 2\n")
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("runs", "shell", script(open.wait()))
	u.running("runs")
	u.submit("a", "shell", script("true"))
	u.submit("b", "shell", script("true"))
	u.do("POST", "/submit-job", `{"jobName":"c","type":"shell","settings":`+script("true")+`}`).code(403, "QUOTA_EXCEEDED")
	open.open(t)
	u.finished("b")
	u.submit("c", "shell", script("true"))
}
