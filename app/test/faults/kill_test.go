package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// loadUntil runs clients until the given number of further acknowledgements
// arrived and a moment has passed, then calls fault and stops the clients.
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
		s.t.Errorf("the clients get too few responses:\n%s", s.log.tail())
	}
	fault()
	close(stop)
	clients.Wait()
}

// The service is killed repeatedly under load, during submissions, uploads and
// running jobs.
func TestKillsLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\ngrace = \"1s\"\n")
	random := rand.New(rand.NewPCG(*seed, 1))
	l, v := newLedger(), &verdict{}
	for n := range *kills {
		s.start()
		s.verify(l, v, false)
		v.stop(t)
		o := load{name: fmt.Sprintf("l%d", n), clients: 6, jobs: 3, seed: random.Uint64()}
		s.loadUntil(l, o, 5+random.IntN(40), time.Duration(random.IntN(10_000))*time.Microsecond, s.kill)
		s.check()
		if t.Failed() {
			t.Fatalf("after kill %d of seed %d:\n%s", n+1, *seed, s.log.tail())
		}
	}
	s.start()
	s.conclude(l, v)
	t.Logf("%d kills, %d jobs, %d uploads, seed %d", *kills, len(l.jobs), len(l.files), *seed)
}
