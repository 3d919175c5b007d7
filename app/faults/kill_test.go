package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// loadUntil lets clients work on this life until some more answers are there
// and a moment has passed, then calls fault, and ends the clients.
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
	o.client, o.ledger = s.client(), l
	defer o.client.Close()
	var clients sync.WaitGroup
	clients.Go(func() { o.run(ctx, stop) })
	select {
	case <-enough:
		time.Sleep(moment) // into the middle of whatever goes on
	case <-s.exited:
	case <-time.After(patience):
		s.t.Errorf("the clients do not get their answers:\n%s", s.log.tail())
	}
	fault()
	close(stop)
	clients.Wait()
}

// The service is killed under load again and again: with submissions, uploads
// and running jobs.
func TestKillsLoseNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\ngrace = \"1s\"\n")
	random := rand.New(rand.NewPCG(*seed, 1))
	l, v := newLedger(), &verdict{}
	for life := range *kills {
		s.start()
		s.verify(l, v, false)
		v.stop(t)
		o := load{life: fmt.Sprintf("l%d", life), clients: 6, jobs: 3, seed: random.Uint64()}
		s.loadUntil(l, o, 5+random.IntN(40), time.Duration(random.IntN(10_000))*time.Microsecond, s.kill)
		s.check()
		if t.Failed() {
			t.Fatalf("after kill %d of seed %d:\n%s", life+1, *seed, s.log.tail())
		}
	}
	s.start()
	s.conclude(l, v)
	t.Logf("%d kills, %d jobs, %d uploads, seed %d", *kills, len(l.jobs), len(l.files), *seed)
}
