package delivery

import (
	"context"
	"math/rand/v2"
	"time"

	"molrun/app/job/notice"
)

// Bounds of what is sent at once.
const (
	atOnce          = 64
	perOrganization = 16
	askedFor        = 8 // of these, to receivers that submissions name: any number may hang
	perLane         = 4
)

// places are how many attempts an organization makes now.
type places struct{ all, asked int }

// places returns how many more deliveries of a lane may be tried. One that fails is
// probed with one.
func (s *Sender) places(l *lane) int {
	switch {
	case l == nil:
		return perLane
	case time.Now().Before(l.until):
		return 0
	case l.failures > 0:
		return 1 - len(l.inFlight)
	}
	return perLane - len(l.inFlight)
}

// count counts attempts that begin or end.
func (s *Sender) count(lane string, n int) {
	organization, asked := notice.ReadLane(lane)
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

// full reports whether an organization may make no more attempts in a lane.
func (s *Sender) full(lane string) bool {
	organization, asked := notice.ReadLane(lane)
	o := s.ofOrg[organization]
	return o != nil && (o.all >= perOrganization || asked && o.asked >= askedFor)
}

// start begins attempts as far as there are places. Each place goes to the organization
// that has the fewest, and there to one lane after the other.
func (s *Sender) start(ctx context.Context, found []candidates) {
	rand.Shuffle(len(found), func(i, k int) { found[i], found[k] = found[k], found[i] })
	waiting := map[string][]candidates{} // one delivery each, by organization
	for row := range perLane {
		for _, c := range found {
			if row < len(c.ids) {
				organization, _ := notice.ReadLane(c.lane)
				waiting[organization] = append(waiting[organization], candidates{c.lane, c.ids[row : row+1]})
			}
		}
	}
	for s.busy < atOnce && len(waiting) > 0 {
		organization := s.fewest(waiting)
		next := waiting[organization][0]
		if waiting[organization] = waiting[organization][1:]; len(waiting[organization]) == 0 {
			delete(waiting, organization)
		}
		if !s.full(next.lane) {
			s.begin(ctx, next.lane, next.ids[0])
		}
	}
}

// fewest returns the organization that makes the fewest attempts now, any of several.
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

// begin begins an attempt.
func (s *Sender) begin(ctx context.Context, name, id string) {
	l := s.lanes[name]
	if l == nil {
		l = &lane{}
		s.lanes[name] = l
	}
	l.inFlight = append(l.inFlight, id)
	s.count(name, 1)
	s.workers.Go(func() { s.results <- s.try(ctx, name, id) })
}
