package faults

import (
	"fmt"
	"testing"
	"time"
)

// After SIGTERM under load, nothing acknowledged is lost, jobs keep running, and
// the next start adopts each of them once.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\n")
	l, v := newLedger(), &verdict{}
	for n := range 3 {
		s.start()
		s.verify(l, v, false)
		o := load{name: fmt.Sprintf("s%d", n), clients: 6, jobs: 4, seed: *seed + uint64(n)}
		var took time.Duration
		s.loadUntil(l, o, 40, 0, func() {
			begin := time.Now()
			s.stop()
			took = time.Since(begin)
		})
		t.Logf("exit 0, %v after SIGTERM under load", took.Round(time.Millisecond))
		s.check()
	}
	s.start()
	s.conclude(l, v)
}
