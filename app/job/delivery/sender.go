package delivery

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/job/notice"
)

// Posting is a message to a webhook.
type Posting struct {
	URL       string
	ID        string // webhook-id
	Timestamp time.Time
	Signature string
	Body      []byte
}

// SenderOptions configures a sender.
type SenderOptions struct {
	Now  func() time.Time                              // wall clock, which can jump
	Post func(context.Context, Posting) notice.Attempt // must limit its own time
	Mail func(context.Context, Email) notice.Attempt   // likewise; nil disables mail
	Link func(jobName string) string                   // for mail; "" means no link

	Schedule notice.Schedule // zero means the default
	Poll     time.Duration   // polling interval for new deliveries; 0 means a second

	OnAttempt func(d *notice.Delivery) // called after each attempt and each abandoned delivery; optional
	Warn      func(error)              // called with errors that delay the sender; optional
}

// shutdownGrace is how long attempts can continue after the service is asked to stop.
const shutdownGrace = time.Second

// maxBackoff limits the backoff of an unresponsive receiver. Deliveries have their own,
// longer backoff, but one success shows that the receiver has recovered.
const maxBackoff = 15 * time.Second

// expireStep is the maximum number of deliveries that one transaction abandons.
const expireStep = 100

// Sender makes deliveries. Each receiver has a queue. A receiver that hangs or fails uses
// one slot from time to time, and does not delay the others.
type Sender struct {
	store app.Store
	o     SenderOptions

	// Only Run uses the fields below.
	queues  map[string]*queue
	busy    int
	ofOrg   map[string]*places
	results chan result
	workers sync.WaitGroup
}

// queue is the state of a receiver; it is dropped when the receiver is healthy and idle.
type queue struct {
	inFlight []string  // IDs of deliveries
	failures int       // consecutive failures
	until    time.Time // monotonic
}

type result struct {
	queue, id string
	attempt   notice.Attempt
	cut       bool // canceled because the service stopped
	err       error
}

// NewSender returns a sender; call Run to start it.
func NewSender(store app.Store, o SenderOptions) *Sender {
	o.Poll = cmp.Or(o.Poll, time.Second)
	if o.Schedule == (notice.Schedule{}) {
		o.Schedule = notice.DefaultSchedule()
	}
	if o.OnAttempt == nil {
		o.OnAttempt = func(*notice.Delivery) {}
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	return &Sender{store: store, o: o, queues: map[string]*queue{}, ofOrg: map[string]*places{}, results: make(chan result, atOnce)}
}

// Run makes deliveries until ctx ends. After shutdownGrace, it cancels the attempts still
// in progress, which are repeated after the next start.
func (s *Sender) Run(ctx context.Context) error {
	attempts, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer s.workers.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			defer time.AfterFunc(shutdownGrace, cut).Stop()
			s.workers.Wait()
			return nil
		case r := <-s.results:
			s.recordResult(r)
			for len(s.results) > 0 {
				s.recordResult(<-s.results)
			}
		case <-timer.C:
		}
		next, err := s.round(ctx, attempts)
		if err != nil && ctx.Err() == nil {
			s.o.Warn(err)
		}
		timer.Reset(next)
	}
}

// recordResult updates the receiver's queue with the result of an attempt.
func (s *Sender) recordResult(r result) {
	s.count(r.queue, -1)
	l := s.queues[r.queue]
	l.inFlight = slices.DeleteFunc(l.inFlight, func(id string) bool { return id == r.id })
	switch a := r.attempt; {
	case r.cut:
	case r.err != nil || a.Error != "" && a.Status == 0: // an error not specific to the message
		if r.err != nil {
			s.o.Warn(r.err)
		}
		l.failures++
		l.until = time.Now().Add(min(s.o.Schedule.Pause(l.failures), maxBackoff))
	default:
		l.failures, l.until = 0, time.Time{}
		if a.RetryAfter > 0 {
			l.failures, l.until = 1, time.Now().Add(min(a.RetryAfter, s.o.Schedule.Longest))
		}
	}
	if l.failures == 0 && len(l.inFlight) == 0 {
		delete(s.queues, r.queue)
	}
}

// candidates holds the deliveries of a queue that can be attempted now.
type candidates struct {
	queue string
	ids   []string
}

// round starts the attempts that are due, passing them the context attempts, and returns
// how long to wait before the next round.
func (s *Sender) round(ctx, attempts context.Context) (next time.Duration, err error) {
	now := s.o.Now()
	var found []candidates
	var expired []string
	seen := map[string]bool{}
	next = s.o.Poll
	err = s.store.View(ctx, func(tx app.Tx) error {
		return tx.PendingDeliveries(func(d notice.Due) notice.Visit {
			seen[d.Queue] = true
			// A later time was set before the clock was set back.
			if at := d.At.Sub(now); at > 0 && at <= s.o.Schedule.Longest {
				next = min(next, at)
				return notice.NextQueue
			}
			l := s.queues[d.Queue]
			if l != nil && slices.Contains(l.inFlight, d.ID) {
				return notice.NextDue
			}
			if l != nil && l.failures > 0 && s.expired(d, now) && len(expired) < expireStep {
				expired = append(expired, d.ID)
				return notice.NextDue
			}
			if len(found) == 0 || found[len(found)-1].queue != d.Queue {
				found = append(found, candidates{queue: d.Queue})
			}
			c := &found[len(found)-1]
			if len(c.ids) >= s.places(l) {
				return notice.NextQueue
			}
			c.ids = append(c.ids, d.ID)
			return notice.NextDue
		})
	})
	if err != nil {
		return next, err
	}
	for name, l := range s.queues { // receivers without pending deliveries
		if !seen[name] && len(l.inFlight) == 0 {
			delete(s.queues, name)
		}
	}
	s.startAttempts(attempts, found)
	if len(expired) > 0 {
		if err := s.abandon(ctx, expired); err != nil {
			return next, err
		}
		return 0, nil // there might be more
	}
	return next, nil
}

func (s *Sender) expired(d notice.Due, now time.Time) bool {
	id, err := sortid.Parse(d.ID)
	return err == nil && now.Sub(id.Time()) >= s.o.Schedule.GiveUpAfter
}

// abandon abandons deliveries to receivers that have been unresponsive for too long.
func (s *Sender) abandon(ctx context.Context, ids []string) error {
	var all []*notice.Delivery
	err := s.store.Update(ctx, func(tx app.Tx) error {
		all = nil
		for _, id := range ids {
			d, err := tx.Delivery(id)
			if errors.Is(err, fault.NotFound) || err == nil && d.State != notice.Pending {
				continue
			}
			if err != nil {
				return err
			}
			d.Abandon("abandoned: "+cmp.Or(d.Error, "the receiver has been unavailable for too long"), s.o.Now())
			if err := tx.PutDelivery(d); err != nil {
				return err
			}
			all = append(all, d)
		}
		return nil
	})
	if err == nil {
		for _, d := range all {
			s.o.OnAttempt(d)
		}
	}
	return err
}
