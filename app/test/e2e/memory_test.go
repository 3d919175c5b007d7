package e2e

import (
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestJobGetsMoreMemoryUntilItFits runs a program that needs about 150 MiB. With 64 and
// 128 MiB it is killed, by the kernel or, if cgroups cannot be created, by molrun.
func TestJobGetsMoreMemoryUntilItFits(t *testing.T) {
	t.Parallel()
	file := strings.Replace(shellFile, "retries = 1", "resumable = true", 1) + "[retry]\non = [\"OUT_OF_MEMORY\"]\nattempts = 2\n"
	s := startServer(t, serverOptions{config: "[runner]\nmemory = \"1GiB\"\n", algorithms: map[string]string{"shell.toml": file}})
	u := s.user("lab", "ann@lab.example")
	// tail buffers the endless line. Each attempt leaves a mark; the first two never end
	// by themselves.
	u.submit("grow", "shell", script(`echo x >>out/ran; tries=$(wc -l <out/ran); echo "attempt $tries"
{ head -c 150000000 /dev/zero; [ $tries -ge 3 ] || exec sleep 7772; } | tail >/dev/null`))
	j := u.finished("grow")
	if j.Status != "COMPLETED" || j.Attempts != 3 || j.MemoryBytes != 256<<20 || len(j.PastAttempts) != 2 {
		t.Fatalf("%s after %d attempts with %d bytes: %+v, %+v", j.Status, j.Attempts, j.MemoryBytes, j.PastAttempts, j.Failure)
	}
	t.Log("isolation: ", j.Isolation)
	for i, past := range j.PastAttempts {
		if past.Attempt != i+1 || past.Code != "OUT_OF_MEMORY" || past.MemoryBytes != 64<<20<<i || past.Message == "" {
			t.Errorf("past attempt %+v", past)
		}
		log := u.do("GET", "/jobs/grow/logs?attempt="+string(rune('1'+i)), nil).want(200)
		must.Contain(t, "log of a past attempt", string(log.body), "attempt ")
	}
	u.submit("never", "shell", script("tail /dev/zero"))
	j = u.finished("never")
	if j.Status != "FAILED" || j.Attempts != 3 || j.Failure.Code != "OUT_OF_MEMORY" {
		t.Fatalf("%s after %d attempts: %+v", j.Status, j.Attempts, j.Failure)
	}
	must.Contain(t, "the failure", j.Failure.Message, "Its memory was raised twice, the maximum for shell.")
	must.Equal(t, "processes are left", s.alive("sleep\x007772"), 0)
}
