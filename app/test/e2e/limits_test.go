package e2e

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestRunningJobsKeepToLimits tests limits set in the configuration. Package schedule
// tests how they affect scheduling.
func TestRunningJobsKeepToLimits(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 16\nmemory = \"16GiB\"\n[user_quota]\ncpus = 3\n")
	u, open := s.user("lab", "ann@lab.example"), s.gate("go")
	wait := func(cpus int) string { return script(open.wait(), fmt.Sprintf(`,"cpus":%d`, cpus)) }
	u.submit("first", "shell", wait(2))
	u.running("first")
	u.submit("second", "shell", wait(2))
	u.until("second", "waiting for a limit", func(r record) bool {
		return strings.Contains(r.StatusReason, `the limit of user "ann@lab.example" is 3 CPUs at a time (2 in use)`)
	})
	must.Contain(t, "its place in the queue", string(u.members("second")["queue"]), `"blockedBy":"user-limit"`)
	u.do("POST", "/submit-job", jobBody("large", wait(4))).detail("body.settings")
	open.open(t)
	u.completed("second")
}
