package follow

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// Message is a message of a stream.
type Message struct {
	Event string          // "" is a sign of life
	ID    string          // the place behind the message; "" leaves it
	Data  json.RawMessage // an object
}

// The kinds of messages that are no events of the app.
const (
	kindLog   = "log"
	kindReset = "reset"
	kindEnd   = "end"
)

const (
	// heartbeat is how often a stream gives a sign of life: often enough for proxies,
	// which give up after a minute.
	heartbeat = 15 * time.Second

	pageSize = 256 // events read from the store at once

	// restFor is how long a stream rests between two deliveries, and restForEach by
	// how much longer for each open stream: events of that time are sent together.
	restFor     = 100 * time.Millisecond
	restForEach = time.Millisecond

	// free is how many events a delivery may have at any load.
	free = 16

	// logEvery is the time between two looks at the log of a running job.
	logEvery = 500 * time.Millisecond
)

// Stream is what happens to some jobs. It belongs to one goroutine.
type Stream struct {
	follower *Follower
	by       app.Caller
	listener *eventListener
	selects  func(*app.Event) bool

	place  events.ID // everything up to it was sent or is ready
	told   string    // the place in the last message that had one
	behind bool      // the store has what comes next
	ready  []Message
	rest   time.Time // nothing is delivered before
	more   bool      // Next returned messages, so there may be more
	beat   time.Time // when the next sign of life is due
	timer  *time.Timer

	job   *app.Job // nil: not a stream of one
	gone  bool     // it was deleted
	log   *logTail // nil: not asked for
	ended bool
}

// Close ends the stream.
func (s *Stream) Close() {
	s.listener.Close()
	s.follower.open.Add(-1)
}

// Wait returns true when Next may have messages, and false when one of the
// channels is closed. Here a stream spends nearly all of its time.
func (s *Stream) Wait(done, stop <-chan struct{}) bool {
	if s.more {
		return true
	}
	s.timer.Reset(time.Until(s.beat))
	select {
	case <-s.listener.Wake():
		return s.pause(done, stop)
	case <-s.logTime():
	case <-s.timer.C:
	case <-done:
		return false
	case <-stop:
		return false
	}
	return true
}

// pause lets the stream rest, so that many events become one delivery.
func (s *Stream) pause(done, stop <-chan struct{}) bool {
	left := time.Until(s.rest)
	if left <= 0 {
		return true
	}
	s.timer.Reset(left)
	select {
	case <-s.timer.C:
		return true
	case <-done:
	case <-stop:
	}
	return false
}

// Next returns the messages to send, or none. From time to time, and when it has
// returned everything that there was in the beginning, it returns a sign of life: a
// message without an event. The error is io.EOF behind the last message, and
// Unauthorized once the caller's key is no longer valid.
func (s *Stream) Next(ctx context.Context) ([]Message, error) {
	if err := s.follower.accounts.Recheck(ctx, s.by); err != nil {
		return nil, err
	}
	out, err := s.step(ctx)
	if err != nil {
		return nil, err
	}
	s.more = len(out) > 0
	if now := time.Now(); !s.more && !now.Before(s.beat) {
		s.beat = now.Add(heartbeat)
		return s.signOfLife(), nil
	}
	return out, nil
}

// logTime returns a channel that receives when it is time to look at the log, never
// if nothing is written to it.
func (s *Stream) logTime() <-chan time.Time {
	if s.log == nil || s.isOver() || s.job.Status != app.Running {
		return nil
	}
	return time.After(logEvery)
}

// signOfLife also gives the client the position up to which it has all events, unless it
// knows.
func (s *Stream) signOfLife() []Message {
	if s.told == s.ID() {
		return []Message{{}}
	}
	return []Message{s.stamp(Message{})}
}

// step returns the messages to send now.
func (s *Stream) step(ctx context.Context) (out []Message, err error) {
	switch {
	case s.ended:
		return nil, io.EOF
	case len(s.ready) > 0:
		out, s.ready = s.ready, nil
		return out, nil
	case s.behind:
		if out, err = s.catchUp(ctx); err != nil || s.behind || len(out) > 0 {
			return out, err
		}
	}
	news := s.listener.Take()
	if out, err = s.messagesOf(ctx, news); err != nil || len(out) > 0 {
		s.rest = time.Now().Add(restFor + time.Duration(s.follower.open.Load())*restForEach)
		return out, err
	}
	if s.log != nil && !s.gone {
		if out, err = s.readLog(ctx); err != nil || len(out) > 0 {
			return out, err
		}
	}
	if s.isOver() {
		return []Message{s.endMessage()}, nil
	}
	return nil, nil
}

// catchUp returns the next events out of the store.
func (s *Stream) catchUp(ctx context.Context) ([]Message, error) {
	var page []events.Entry
	known := false
	err := s.follower.store.View(ctx, func(tx app.Tx) (err error) {
		page, known, err = tx.EventsAfter(s.by.Organization, s.place, pageSize)
		if err == nil && !known {
			s.place, err = tx.LastEvent(s.by.Organization)
		}
		return err
	})
	if s.behind = len(page) == pageSize; err != nil {
		return nil, err
	}
	if !known {
		return s.reset(ctx, "There were too many events to keep them all.")
	}
	all := make([]*app.Event, len(page))
	for i, entry := range page {
		if all[i], err = app.DecodeEvent(entry); err != nil {
			return nil, err
		}
	}
	return s.pick(all), nil
}

// pick returns the messages of the events that the stream sends, and moves the
// place behind them.
func (s *Stream) pick(all []*app.Event) (out []Message) {
	for _, e := range all {
		if e.ID.Number <= s.place.Number {
			continue // the store had it
		}
		s.place = e.ID
		if s.selects(e) {
			s.noteEvent(e)
			out = append(out, s.message(e))
		}
	}
	return out
}

// messagesOf returns the messages of the news of a listener.
func (s *Stream) messagesOf(ctx context.Context, news eventNews) (out []Message, err error) {
	switch n := uint64(len(news.Events)); {
	case news.Missed && s.follower.takeBudget((news.Last.Number-s.place.Number)/perPlace):
		s.behind = true
		return s.catchUp(ctx)
	case news.Missed, n > free && !s.follower.takeBudget(n):
		s.place = news.Last
		return s.reset(ctx, "There were too many events to send them all.")
	}
	out = s.pick(news.Events)
	if news.Last.Number > s.place.Number {
		s.place = news.Last
	}
	for _, e := range news.Reports {
		if s.selects(e) {
			out = append(out, Message{Event: string(e.Kind), Data: e.Data})
		}
	}
	return out, nil
}

// noteEvent keeps what a stream of one job has to know of it.
func (s *Stream) noteEvent(e *app.Event) {
	switch {
	case s.job == nil:
	case e.Kind == app.EventJobDeleted:
		s.gone = true
	case e.Kind == app.EventJobChanged:
		s.job = e.Job
	}
}

func (s *Stream) message(e *app.Event) Message {
	return s.stamp(Message{Event: string(e.Kind), Data: e.Data})
}

// stamp gives a message the present place.
func (s *Stream) stamp(m Message) Message {
	s.told = s.ID()
	m.ID = s.told
	return m
}

// ID returns the present place as text.
func (s *Stream) ID() string {
	if s.log == nil {
		return s.place.String()
	}
	return s.place.String() + "." + s.log.String()
}

// reset says that the client has to list the jobs again. A stream of one job lists it itself.
func (s *Stream) reset(ctx context.Context, why string) ([]Message, error) {
	if s.job == nil {
		return []Message{s.stamp(resetMessage(why))}, nil
	}
	out := []Message{resetMessage(why)}
	err := s.follower.store.View(ctx, func(tx app.Tx) (err error) {
		if s.place, err = tx.LastEvent(s.by.Organization); err != nil {
			return err
		}
		j, err := tx.Job(s.job.ID)
		if s.gone = errors.Is(err, fault.NotFound); s.gone {
			return nil
		}
		if err == nil {
			out = append(out, s.present(j)...)
		}
		return err
	})
	return out, err
}

func resetMessage(why string) Message {
	data, _ := strictjson.Encode(map[string]string{"message": why + " List the jobs again; new events follow."}) // texts cannot fail
	return Message{Event: kindReset, Data: data}
}

// present returns the messages that describe a job as it is. Only the last message moves the place: a client that
// does not get it begins again.
func (s *Stream) present(j *app.Job) (out []Message) {
	s.job = j.Summary()
	for _, e := range app.PresentEvents(j) {
		out = append(out, Message{Event: string(e.Kind), Data: e.Data})
	}
	out[len(out)-1] = s.stamp(out[len(out)-1])
	return out
}

// isOver reports whether the job of a stream of one has finished.
func (s *Stream) isOver() bool { return s.gone || s.job != nil && s.job.Status.Finished() }

func (s *Stream) endMessage() Message {
	s.ended = true
	data, _ := strictjson.Encode(struct { // texts cannot fail
		ID     app.JobID  `json:"jobId"`
		Name   string     `json:"jobName"`
		Status app.Status `json:"status"`
	}{s.job.ID, s.job.Name, s.job.Status})
	return s.stamp(Message{Event: kindEnd, Data: data})
}

// readLog returns the next lines of the log.
func (s *Stream) readLog(ctx context.Context) ([]Message, error) {
	parts, err := s.log.readParts(ctx, s.job)
	if errors.Is(err, fault.NotFound) {
		return nil, nil // the job was deleted just now, which the next event says
	}
	out := make([]Message, 0, len(parts))
	for _, p := range parts {
		data, _ := strictjson.Encode(p) // valid UTF-8 cannot fail
		s.log.place = p.end
		out = append(out, s.stamp(Message{Event: kindLog, Data: data}))
	}
	return out, err
}
