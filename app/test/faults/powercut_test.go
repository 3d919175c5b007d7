package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"molrun/app/test/must"
)

// needMachine skips the test if no virtual machine is available.
func needMachine(t *testing.T) {
	t.Helper()
	if *machine == "" {
		t.Skip("-machine is not set; .ci/powercut creates the directory")
	}
	for _, name := range []string{"qemu-system-x86_64", "mkfs.ext4"} {
		must.Installed(t, name)
	}
	if path, err := filepath.Abs(*machine); err == nil {
		*machine = path
	}
}

// guestLoad is the load for a virtual machine, which can be slow.
func guestLoad(boot int, r *rand.Rand) load {
	return load{name: fmt.Sprintf("b%d", boot), clients: 6, jobs: 3, rows: 8, seed: r.Uint64()}
}

// The power fails repeatedly under load, once after the clock has jumped a year ahead and
// back, and once after a boot without a battery-backed clock.
func TestPowerCutsLoseNothingAcknowledged(t *testing.T) {
	needMachine(t)
	g := newGuest(t)
	random := rand.New(rand.NewPCG(*seed, 2))
	l, v := newLedger(), &verdict{mayFail: true}
	sectors := 0
	for n := range *cuts {
		g.boot()
		g.server.verify(l, v, false)
		g.server.compareResults(l, v)
		v.stop(t)
		moment := time.Duration(random.IntN(100_000)) * time.Microsecond
		o := guestLoad(n, random)
		g.server.loadUntil(l, o, 10+random.IntN(60), moment, func() { sectors += g.cut(l, o.name, random) })
		t.Logf("cut %d: acknowledged %d so far", n+1, l.acknowledged())
		if t.Failed() {
			t.Fatalf("at cut %d of seed %d", n+1, *seed)
		}
	}
	g.boot()
	sectors += g.jumpClock(l, random)
	sectors += g.startIn1970(l, random)
	g.boot()
	g.server.verify(l, v, false)
	g.server.compareResults(l, v)
	g.server.drain(l, v)
	g.server.verify(l, v, true)
	v.report(t)
	results := 0
	for _, fact := range l.jobs {
		if fact.compared {
			results++
		}
	}
	shared := g.sharedProcesses()
	t.Logf("%d results outlasted a cut; %d processes ran several rows", results, shared)
	if shared == 0 {
		t.Error("no rows shared a process")
	}
	t.Logf("%d power cuts, a clock jump and a start in 1970, %d jobs, %d uploads, %d writes and %d flushes of the disk, %d sectors not flushed at the cuts, seed %d",
		*cuts+2, len(l.jobs), len(l.files), g.disk.writes, g.disk.flushes, sectors, *seed)
	t.Logf("acknowledged %d, %v", l.acknowledged(), v)
}

// compareResults checks that each job whose record says COMPLETED has its result. Many
// results are made durable at once, before their records. A result that has survived one
// power failure is not compared again.
func (s *server) compareResults(l *ledger, v *verdict) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	c := s.client()
	defer c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for job, err := range everyJob(ctx, c) {
		must.OK(s.t, err)
		fact := l.jobs[job.Name]
		if fact == nil || fact.rows != nil || fact.compared || job.Status != "COMPLETED" {
			continue
		}
		text, err := result(ctx, c, job.Name, "result.txt")
		if fact.compared = err == nil && text == diaryResult(job.Name); !fact.compared {
			v.lost = append(v.lost, fmt.Sprintf("the result of job %s: %q, error %v", job.Name, text, err))
		}
	}
}

// sharedProcesses returns how many processes on the machine have run several jobs of a
// batch.
func (g *guest) sharedProcesses() (n int) {
	g.t.Helper()
	g.typeCommand(`for f in data/jobs/*/[0-9]*/run.json; do tr -d ' \n' <$f | grep -o '"pid":[0-9]*,"bootId":"[^"]*"'; done | sort | uniq -d | wc -l | sed 's/.*/shared processes: &./'`)
	said := regexp.MustCompile(`shared processes: (\d+)\.`)
	must.Become(g.t, "the machine counts processes", func() bool {
		m := said.FindStringSubmatch(g.log.String())
		if m != nil {
			_, err := fmt.Sscan(m[1], &n)
			must.OK(g.t, err)
		}
		return m != nil
	})
	return n
}

// jumpClock sets the clock a year ahead under load, then back, and cuts the power. Links
// created before a jump can be rejected after it.
func (g *guest) jumpClock(l *ledger, random *rand.Rand) (sectors int) {
	g.t.Helper()
	l.note(func() { l.excused = []string{"LINK_EXPIRED", "LINK_INVALID"} })
	o := guestLoad(*cuts, random)
	const year = 365 * 24 * time.Hour
	g.server.loadUntil(l, o, 20, 0, func() { g.setClock(year) })
	o.name += "ahead"
	g.server.loadUntil(l, o, 20, 0, func() { g.setClock(-10 * time.Minute) })
	o.name += "back"
	g.server.loadUntil(l, o, 20, 0, func() { sectors += g.cut(l, o.name, random) })
	return sectors
}

// startIn1970 boots the machine as if its clock had no battery. molrun starts at a time
// long before any in its data directory, and the clock is set under load, as NTP does.
func (g *guest) startIn1970(l *ledger, random *rand.Rand) (sectors int) {
	g.t.Helper()
	g.clock = "1970-01-01T00:05:00"
	defer func() { g.clock = "" }()
	g.boot()
	g.clockShows(time.Until(time.Date(1970, 1, 1, 0, 5, 0, 0, time.UTC)))
	o := guestLoad(*cuts+1, random)
	g.server.loadUntil(l, o, 20, 0, func() { g.setClock(0) })
	o.name += "now"
	g.server.loadUntil(l, o, 20, 0, func() { sectors += g.cut(l, o.name, random) })
	return sectors
}

// setClock sets the machine's clock to the current time plus an offset, and waits until
// molrun's responses show it.
func (g *guest) setClock(beside time.Duration) {
	g.t.Helper()
	g.typeCommand(fmt.Sprintf("date -s @%d", time.Now().Add(beside).Unix()))
	g.clockShows(beside)
}

// clockShows waits until molrun's responses show the current time plus an offset.
func (g *guest) clockShows(beside time.Duration) {
	g.t.Helper()
	c := &http.Client{Timeout: patience}
	must.Become(g.t, "the clock is set", func() bool {
		answer, err := c.Get(g.server.base + "/healthz")
		if err != nil {
			return false
		}
		answer.Body.Close() // only the header is needed
		shown, err := http.ParseTime(answer.Header.Get("Date"))
		return err == nil && time.Since(shown.Add(-beside)).Abs() < 5*time.Minute
	})
}

// This tests the other tests: if the disk acknowledges flushes without performing them,
// acknowledged data is lost, and the comparison must detect that.
func TestPowerCutDataLossOnLyingDiskIsDetected(t *testing.T) {
	needMachine(t)
	g := newGuest(t)
	random := rand.New(rand.NewPCG(*seed, 3))
	l, v := newLedger(), &verdict{}
	g.boot()
	o := guestLoad(0, random)
	g.server.loadUntil(l, o, 20, 0, func() { g.cut(l, o.name, random) })
	g.disk.lies = true
	g.boot()
	o = guestLoad(1, random)
	g.server.loadUntil(l, o, 40, 0, func() { g.cut(l, o.name, random) })
	g.boot()
	g.server.verify(l, v, false)
	if len(v.lost) < 10 {
		t.Errorf("only %d losses found on a lying disk, want at least 10", len(v.lost))
	}
	t.Logf("lying disk (%d writes, %d flushes): acknowledged %d, %v", g.disk.writes, g.disk.flushes, l.acknowledged(), v)
}
