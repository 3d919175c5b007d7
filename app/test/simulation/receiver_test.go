package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/job/delivery"
	"molrun/app/job/notice"
)

// schedule determines when messages are resent and abandoned. It is short, so that both
// happen within a simulation.
var schedule = notice.Schedule{First: 5 * time.Second, Longest: 2 * time.Minute, GiveUpAfter: 20 * time.Minute}

// policy allows e-mail in addition to webhooks.
var policy = notice.Policy{Mail: true}

// receiverState describes how a receiver responds.
type receiverState struct {
	name   string
	takes  time.Duration
	answer notice.Attempt
}

var moods = []receiverState{
	{"works", 0, notice.Attempt{Status: 204}},
	{"answers slowly", 12 * time.Second, notice.Attempt{Status: 200}},
	{"fails", 0, notice.Attempt{Status: 500, Error: "the receiver responded with status 500"}},
	{"is busy", 0, notice.Attempt{Status: 503, Error: "the receiver responded with status 503", RetryAfter: 100 * time.Second}},
	{"refuses connections", 0, notice.Attempt{Error: "it refused the connection"}},
	{"hangs", 15 * time.Second, notice.Attempt{Error: "the receiver did not respond within 15s"}},
	{"breaks connections", 0, notice.Attempt{Error: "it closed the connection without an answer"}},
	{"is gone", 0, notice.Attempt{Status: 410, Error: "the receiver responded with status 410"}},
}

// healthy reports whether messages arrive.
func (m receiverState) healthy() bool { return m.answer.Error == "" }

// receivers are the recipients of notifications. They keep their state when the service
// restarts.
type receivers struct {
	mu    sync.Mutex
	moods map[string]receiverState
	since map[string]time.Time      // time of the last change of state
	said  map[string]notice.Attempt // last response, by delivery; deleted once it is recorded in the store
}

func newReceivers() *receivers {
	return &receivers{moods: map[string]receiverState{}, since: map[string]time.Time{}, said: map[string]notice.Attempt{}}
}

// receiverOf returns the name of the receiver for a target. Each webhook has its own
// host; all e-mail goes to one server.
func receiverOf(target string) string {
	if u, err := url.Parse(target); err == nil && u.Host != "" {
		return u.Host
	}
	return "the mail server"
}

// of returns a receiver's state, and the time since which it has been in that state.
func (r *receivers) of(name string) (receiverState, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, known := r.moods[name]; known {
		return m, r.since[name]
	}
	return moods[0], time.Time{}
}

func (r *receivers) become(name string, m receiverState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moods[name], r.since[name] = m, time.Now()
}

// recover makes all receivers work again.
func (r *receivers) recover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.moods {
		r.moods[name], r.since[name] = moods[0], time.Now()
	}
}

func (r *receivers) say(delivery string, a notice.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[delivery] = a
}

// take returns the last response to a delivery and removes it.
func (r *receivers) take(delivery string) (a notice.Attempt, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, answered = r.said[delivery]
	delete(r.said, delivery)
	return a, answered
}

// messages assigns numbers to messages, because their IDs differ between runs of a seed.
type messages struct{ numbers sync.Map }

// of returns the name of a delivery.
func (m *messages) of(id, target string) string {
	n, known := m.numbers.Load(id)
	if !known {
		return "an unknown message to " + receiverOf(target)
	}
	return fmt.Sprintf("message %d to %s", n, receiverOf(target))
}

// posting is a message on its way to a receiver.
type posting struct {
	delivery.Posting
	letter *delivery.Email // the e-mail, or nil for a webhook
}

// post is called by the sender of notifications in a process.
func (s *site) post(ctx context.Context, d *door, p delivery.Posting) notice.Attempt {
	return s.deliver(ctx, d, s.messages.of(p.ID, p.URL), &posting{Posting: p})
}

func (s *site) mail(ctx context.Context, d *door, l delivery.Email) notice.Attempt {
	target := "mailto:" + l.To
	return s.deliver(ctx, d, s.messages.of(l.ID, target), &posting{Posting: delivery.Posting{URL: target}, letter: &l})
}

// deliver sends a message. It waits at the door before the message arrives, and again
// before the response is returned.
func (s *site) deliver(ctx context.Context, d *door, name string, p *posting) notice.Attempt {
	dead := notice.Attempt{Error: errDead.Error()}
	if d.knock(&visit{label: label{"send", name}, posting: p}) != nil {
		return dead
	}
	m, _ := s.receivers.of(receiverOf(p.URL))
	if m.takes > 0 {
		timer := time.NewTimer(m.takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return notice.Attempt{Error: "it is cut off"}
		}
	}
	s.receivers.say(name, m.answer)
	if d.knock(&visit{label: label{"send", name}, leaves: true}) != nil {
		return dead
	}
	return m.answer
}

// outbox is the store as seen by the sender of notifications. It labels the sender's
// calls.
type outbox struct{ *guardedStore }

var errLooks = errors.New("it looks for pending messages")

// looker stops a closure that is about to look for pending messages.
type looker struct {
	app.Tx
	looks *bool
}

func (l looker) PendingDeliveries(func(notice.Due) notice.Visit) error {
	*l.looks = true
	return errLooks
}

// View lets the sender look for pending messages only when no other call is ready.
func (o outbox) View(ctx context.Context, fn func(app.Tx) error) error {
	looks := false
	if err := o.guardedStore.View(ctx, func(tx app.Tx) error { return fn(looker{tx, &looks}) }); !looks {
		return err
	}
	if err := o.door.poll("what is to be sent"); err != nil {
		return err
	}
	o.site.looked.Store(o.site.wall().UnixMilli())
	return o.guardedStore.View(ctx, fn)
}

// dryRunTx is a transaction whose changes are discarded.
type dryRunTx struct {
	app.Tx
	first *notice.Delivery // the first delivery read
}

func (t *dryRunTx) Delivery(id string) (*notice.Delivery, error) {
	d, err := t.Tx.Delivery(id)
	if t.first == nil && err == nil {
		first := *d
		t.first = &first
	}
	return d, err
}

func (t *dryRunTx) PutDelivery(*notice.Delivery) error { return nil }

// Update runs the closure twice. The first run only determines which delivery it changes,
// which becomes part of the label.
func (o outbox) Update(ctx context.Context, fn func(app.Tx) error) error {
	name := "a deleted message"
	err := o.guardedStore.View(ctx, func(tx app.Tx) error {
		t := &dryRunTx{Tx: tx}
		err := fn(t)
		if t.first != nil {
			name = o.site.messages.of(t.first.Message, t.first.Target)
		}
		return err
	})
	if err != nil {
		return err
	}
	return o.guardedStore.Update(called(ctx, label{"record", name}), fn)
}
