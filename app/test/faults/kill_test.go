package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"molrun/app/test/must"
)

// loadUntil runs clients until the given number of further acknowledgments have arrived,
// waits for a moment, calls fault, and stops the clients.
func (s *server) loadUntil(l *ledger, o load, acks int, moment time.Duration, fault func()) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	enough, stop := make(chan struct{}), make(chan struct{})
	var once sync.Once
	goal := l.acknowledged() + acks
	l.note(func() {
		l.onAck = func(acks int) {
			if acks >= goal {
				once.Do(func() { close(enough) })
			}
		}
	})
	o.client, o.base, o.ledger = s.client(), s.base, l
	defer o.client.Close()
	var clients sync.WaitGroup
	clients.Go(func() { o.run(ctx, stop) })
	select {
	case <-enough:
		time.Sleep(moment) // so that the fault hits at a random point
	case <-s.exited:
	case <-time.After(patience):
		s.t.Errorf("the clients get too few responses:\n%s", s.log.Tail())
	}
	fault()
	close(stop)
	clients.Wait()
}

// ends repeatedly runs clients until the fault makes the service exit. It compares the
// service with the clients' ledger after each start.
func (s *server) ends(times int, o load, v *verdict, fault func()) {
	s.t.Helper()
	random, l := rand.New(rand.NewPCG(*seed, 1)), newLedger()
	for n := range times {
		s.start()
		s.verify(l, v, false)
		v.stop(s.t)
		o.name, o.seed = fmt.Sprintf("l%d", n), random.Uint64()
		s.loadUntil(l, o, 5+random.IntN(40), time.Duration(random.IntN(10_000))*time.Microsecond, fault)
		s.check()
		if s.t.Failed() {
			s.t.Fatalf("after end %d of seed %d:\n%s", n+1, *seed, s.log.Tail())
		}
	}
	s.start()
	s.conclude(l, v)
	s.t.Logf("ended %d times, %d jobs, %d uploads, seed %d", times, len(l.jobs), len(l.files), *seed)
}

const manyCPUs = "[runner]\ncpus = 8\nmemory = \"1GiB\"\ngrace = \"1s\"\n"

// The service is killed repeatedly under load, during submissions, uploads and running
// jobs.
func TestKillsLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", manyCPUs)
	s.ends(*kills, load{clients: 6, jobs: 3}, &verdict{}, s.kill)
}

// After SIGTERM under load, no acknowledged changes are lost, jobs keep running, and the
// next start adopts each of them once.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", manyCPUs)
	s.ends(3, load{clients: 6, jobs: 4}, &verdict{}, func() {
		begin := time.Now()
		s.stop()
		t.Logf("exit 0, %v after SIGTERM under load", time.Since(begin).Round(time.Millisecond))
	})
}

// The machine reboots: the service and all processes of its jobs die at the same time,
// and the boot ID changes. Running jobs must run again in a new attempt.
func TestJobsRunAgainAfterAReboot(t *testing.T) {
	t.Parallel()
	unshare := must.Installed(t, "unshare")
	if err := exec.Command(unshare, "-m", "true").Run(); err != nil {
		must.Skip(t, "mount namespaces, needed to fake the boot ID, do not work here: %v", err)
	}
	s := newServer(t, "", manyCPUs)
	file, boots := s.path("boot_id"), 0
	boot := func() {
		boots++
		must.OK(t, os.WriteFile(file, fmt.Appendf(nil, "00000000-0000-4000-8000-%012d\n", boots), 0o600))
	}
	boot()
	s.prefix = []string{unshare, "-m", "/bin/sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, file}
	s.env = []string{"PATH=" + os.Getenv("PATH")} // needed to find mount
	s.ends(3, load{clients: 3, jobs: 3}, &verdict{mayRepeat: true}, func() {
		s.awaitTask()
		s.kill()
		s.killTasks()
		boot()
	})
}

// awaitTask waits until a job is running.
func (s *server) awaitTask() {
	s.t.Helper()
	must.Become(s.t, "a job runs", func() bool { return len(s.tasks()) > 0 })
}
