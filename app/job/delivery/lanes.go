package delivery

import (
	"context"
	"math/rand/v2"
	"time"

	"molrun/app/job/notice"
)

// Limits on concurrent attempts.
const (
	atOnce               = 64
	perOrganization      = 16
	perSubmissionTargets = 8 // of perOrganization, for receivers named in submissions, which might all hang
	perQueue             = 4
)

// places counts an organization's attempts in progress.
type places struct{ all, asked int }

// places returns how many more deliveries of a queue can be attempted. A failing receiver
// gets one at a time.
func (s *Sender) places(l *queue) int {
	switch {
	case l == nil:
		return perQueue
	case time.Now().Before(l.until):
		return 0
	case l.failures > 0:
		return 1 - len(l.inFlight)
	}
	return perQueue - len(l.inFlight)
}

func (s *Sender) count(queue string, n int) {
	organization, asked := notice.ParseQueue(queue)
	o := s.ofOrg[organization]
	if o == nil {
		o = &places{}
		s.ofOrg[organization] = o
	}
	s.busy += n
	o.all += n
	if asked {
		o.asked += n
	}
	if o.all == 0 {
		delete(s.ofOrg, organization)
	}
}

// full reports whether the limits of its organization prevent further attempts in a
// queue.
func (s *Sender) full(queue string) bool {
	organization, asked := notice.ParseQueue(queue)
	o := s.ofOrg[organization]
	return o != nil && (o.all >= perOrganization || asked && o.asked >= perSubmissionTargets)
}

// startAttempts starts attempts while there are free slots. Each slot goes to the
// organization with the fewest attempts, and to its queues in turn.
func (s *Sender) startAttempts(ctx context.Context, found []candidates) {
	rand.Shuffle(len(found), func(i, k int) { found[i], found[k] = found[k], found[i] })
	waiting := map[string][]candidates{} // by organization; each has one delivery
	for row := range perQueue {
		for _, c := range found {
			if row < len(c.ids) {
				organization, _ := notice.ParseQueue(c.queue)
				waiting[organization] = append(waiting[organization], candidates{c.queue, c.ids[row : row+1]})
			}
		}
	}
	for s.busy < atOnce && len(waiting) > 0 {
		organization := s.fewest(waiting)
		next := waiting[organization][0]
		if waiting[organization] = waiting[organization][1:]; len(waiting[organization]) == 0 {
			delete(waiting, organization)
		}
		if !s.full(next.queue) {
			s.startAttempt(ctx, next.queue, next.ids[0])
		}
	}
}

// fewest returns the organization with the fewest attempts in progress, breaking ties
// arbitrarily.
func (s *Sender) fewest(of map[string][]candidates) (best string) {
	least := atOnce
	for organization := range of {
		n := 0
		if o := s.ofOrg[organization]; o != nil {
			n = o.all
		}
		if n < least {
			best, least = organization, n
		}
	}
	return best
}

func (s *Sender) startAttempt(ctx context.Context, name, id string) {
	l := s.queues[name]
	if l == nil {
		l = &queue{}
		s.queues[name] = l
	}
	l.inFlight = append(l.inFlight, id)
	s.count(name, 1)
	s.workers.Go(func() { s.results <- s.attempt(ctx, name, id) })
}
