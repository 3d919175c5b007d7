package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/app/test/need"
)

// The machine reboots: the service and all processes of its jobs die at once, and
// the boot ID changes. Running jobs run again, in a new attempt.
func TestJobsRunAgainAfterAReboot(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err == nil {
		err = exec.Command(unshare, "-m", "true").Run()
	}
	if err != nil {
		need.Skip(t, "mount namespaces, needed to fake the boot ID, do not work here: %v", err)
	}
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\ngrace = \"1s\"\n")
	boot := s.path("boot_id")
	s.prefix = []string{unshare, "-m", "/bin/sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, boot}
	s.env = []string{"PATH=" + os.Getenv("PATH")} // for mount
	l, v := newLedger(), &verdict{mayRepeat: true}
	for restart := range 3 {
		must.OK(t, os.WriteFile(boot, fmt.Appendf(nil, "00000000-0000-4000-8000-%012d\n", restart), 0o600))
		s.start()
		s.verify(l, v, false)
		o := load{name: fmt.Sprintf("r%d", restart), clients: 3, jobs: 3, seed: *seed + uint64(restart)}
		s.loadUntil(l, o, 20, 0, func() {
			s.awaitTask()
			s.kill()
			s.killTasks()
		})
		s.check()
	}
	must.OK(t, os.WriteFile(boot, []byte("00000000-0000-4000-8000-000000000099\n"), 0o600))
	s.start()
	s.conclude(l, v)
}

// awaitTask waits until a job runs.
func (s *server) awaitTask() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for len(s.tasks()) == 0 {
		select {
		case <-ctx.Done():
			s.t.Fatal("no job runs")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
