package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"molrun/app"
	"molrun/app/job/follow"
	"molrun/app/job/listing"
)

// maxListeners is the maximum number of listeners in a simulation.
const maxListeners = 5

// listener is a user who follows events and, after a disconnection, resumes at the last
// position received.
type listener struct {
	name   string
	by     app.Caller
	query  listing.Selection
	hears  func(*expectedEvent) bool
	stream *follow.Stream // nil while disconnected
	place  string         // last position received; "" if none
	next   int            // index of the next event to receive in the organization's history
}

// listen has a user start to follow some jobs, get disconnected, resume, or read pending
// events.
func (s *simulation) listen() {
	s.up()
	if s.process == nil {
		return
	}
	if len(s.listeners) < maxListeners && s.rng.IntN(3) == 0 {
		s.listeners = append(s.listeners, s.newListener())
	}
	if len(s.listeners) == 0 {
		return
	}
	l := s.listeners[s.rng.IntN(len(s.listeners))]
	switch {
	case l.stream == nil:
		s.connect(l)
	case s.rng.IntN(3) == 0:
		s.tracef("%s loses the connection", l.name)
		l.leave()
	}
	if s.rng.IntN(2) == 0 {
		s.read(l)
	}
}

// newListener returns a listener that selects jobs in one of several ways.
func (s *simulation) newListener() *listener {
	by := users[s.rng.IntN(len(users))]
	by.KeyID = s.keys[by.Email]
	l := &listener{by: by}
	switch s.rng.IntN(3) {
	case 0:
		l.query.WholeOrganization = true
		l.hears = func(t *expectedEvent) bool { return t.batch == "" }
	case 1:
		l.hears = func(t *expectedEvent) bool { return t.batch == "" && t.email == by.Email }
	case 2:
		e := s.some(func(e *entry) bool { return e.IsBatch() && e.Organization == by.Organization })
		if e == nil {
			return s.newListener()
		}
		l.query.WholeOrganization, l.query.Batch = true, string(e.ID)
		l.hears = func(t *expectedEvent) bool { return t.job == e.ID || t.batch == e.ID }
	}
	l.name = fmt.Sprintf("listener %d, %s,", len(s.listeners)+1, by.Email)
	return l
}

// connect opens a stream. It starts at the last position, after any event, after the
// state shown by a listing, or now.
func (s *simulation) connect(l *listener) {
	all := s.history[l.by.Organization]
	how := "resumes"
	switch choice := s.rng.IntN(6); {
	case l.place != "" && choice > 0:
	case choice < 2 && len(all) > 0:
		how, l.next = "begins behind an event", 1+s.rng.IntN(len(all))
		l.place = all[l.next-1].id.String()
	case choice == 3:
		page, err := s.process.Lists.Jobs(context.Background(), l.by, listing.Query{Selection: listing.Selection{WholeOrganization: true}, Limit: 1})
		if err != nil {
			s.faultf("%s lists: %v", l.name, err)
			return
		}
		how, l.next, l.place = "lists and goes on", len(all), page.Event.String()
	default:
		how, l.next, l.place = "begins now", len(all), ""
	}
	q := follow.Query{Selection: l.query}
	if l.place != "" {
		place, err := follow.ParsePlace(l.place)
		if err != nil {
			s.faultf("%s was given the place %q: %v", l.name, l.place, err)
			return
		}
		q.After = &place
	}
	s.tracef("%s %s, number %d", l.name, how, l.next)
	var err error
	if l.stream, err = s.process.Follower.Jobs(context.Background(), l.by, q); err != nil {
		s.faultf("%s can't listen: %v", l.name, err)
		return
	}
}

func (l *listener) leave() {
	if l.stream != nil {
		l.stream.Close()
		l.stream = nil
	}
}

// read reads all pending events, and checks that none is missing, repeated, or from
// another organization.
func (s *simulation) read(l *listener) {
	for l.stream != nil && len(s.faults) == 0 {
		messages, err := l.stream.Next(context.Background())
		if err != nil {
			s.faultf("%s: %v", l.name, err)
			return
		}
		news := slices.ContainsFunc(messages, func(m follow.Message) bool { return m.Event != "" })
		for _, m := range messages {
			if err := s.checkMessage(l, m); err != nil {
				s.faultf("%s: %v", l.name, err)
				return
			}
		}
		if !news {
			break
		}
	}
	if l.stream == nil || len(s.faults) > 0 {
		return
	}
	if missed := l.due(s.history[l.by.Organization]); missed != nil {
		s.faultf("%s does not receive %s", l.name, missed)
	}
}

// due returns the next event that the listener must receive, or nil if there is none.
func (l *listener) due(all []*expectedEvent) *expectedEvent {
	for ; l.next < len(all); l.next++ {
		if l.hears(all[l.next]) {
			return all[l.next]
		}
	}
	return nil
}

// checkMessage checks one message.
func (s *simulation) checkMessage(l *listener, m follow.Message) error {
	all := s.history[l.by.Organization]
	if m.Event == string(app.EventProgress) {
		e := s.ledger.jobs[idOf(app.Record(m.Data))]
		return allow(m.ID == "" && e != nil && e.Organization == l.by.Organization, fmt.Sprintf("it hears of progress: %s", m.Data))
	}
	if m.Event != "" {
		want := l.due(all)
		if want == nil {
			return fmt.Errorf("it receives %s %s, want nothing", m.Event, m.Data)
		}
		if err := want.matchesSent(m.Event, m.Data); err != nil {
			return err
		}
		if l.next++; m.ID != want.id.String() {
			return fmt.Errorf("it is given the place %s, want that of event %d", m.ID, l.next)
		}
	}
	if m.ID == "" {
		return nil
	}
	return s.advanceTo(l, m.ID)
}

// advanceTo records a position. The listener must have received everything up to it.
func (s *simulation) advanceTo(l *listener, place string) error {
	all := s.history[l.by.Organization]
	p, err := follow.ParsePlace(place)
	switch number := int(p.Event.Number); {
	case err != nil:
		return err
	case number > len(all) || number > 0 && all[number-1].id != p.Event:
		return errors.New("it is given a place where no event was")
	case number < l.next:
		// There must be no event before this position that the listener has not received.
	case l.due(all[:number]) != nil:
		return fmt.Errorf("it is given a position after %s, which it has not received", l.due(all[:number]))
	}
	l.place = place
	return nil
}

// disconnectListeners closes all streams, as happens when their process exits.
func (s *simulation) disconnectListeners() {
	for _, l := range s.listeners {
		l.leave()
	}
}

// judgeListeners has all listeners resume and read the remaining events.
func (s *simulation) judgeListeners() {
	for _, l := range s.listeners {
		if l.stream == nil && l.place != "" && s.process != nil {
			s.connect(l)
		}
		s.read(l)
	}
}
