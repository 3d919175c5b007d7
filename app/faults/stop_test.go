package faults

import (
	"fmt"
	"testing"
	"time"
)

// SIGTERM under load: what was acknowledged stays, jobs run on and are adopted
// by the next life, each once.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\n")
	l, v := newLedger(), &verdict{}
	for life := range 3 {
		s.start()
		s.verify(l, v, false)
		o := load{life: fmt.Sprintf("s%d", life), clients: 6, jobs: 4, seed: *seed + uint64(life)}
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
