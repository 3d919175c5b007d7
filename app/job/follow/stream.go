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
	Event string          // "" is a heartbeat
	ID    string          // position after the message; "" keeps the last one
	Data  json.RawMessage // an object
}

// The kinds of messages that are not events of package app.
const (
	kindLog   = "log"
	kindReset = "reset"
	kindEnd   = "end"
)

const (
	// heartbeat is the heartbeat interval of a stream, short enough for proxies, which
	// close idle connections after a minute.
	heartbeat = 15 * time.Second

	pageSize = 256 // events read from the store at once

	// deliveryPause is the minimum time between deliveries of a stream, and restForEach
	// is added to it for each open stream. All events that occur within that time are
	// sent together.
	deliveryPause = 100 * time.Millisecond
	restForEach   = time.Millisecond

	// free is the number of events that a delivery can have under any load.
	free = 16

	// logEvery is the polling interval for the log of a running job.
	logEvery = 500 * time.Millisecond
)

// Stream is a stream of events of some jobs. It must be used by one goroutine only.
type Stream struct {
	follower *Follower
	by       app.Caller
	listener *eventListener
	selects  func(*app.Event) bool

	place        events.ID // everything up to it was sent or is ready
	lastID       string    // position in the last message that had one
	behind       bool      // the next events are in the store
	ready        []Message
	nextDelivery time.Time // no delivery before this time
	more         bool      // Next returned messages, so there might be more
	beat         time.Time // when the next heartbeat is due
	timer        *time.Timer

	job   *app.Job // nil if not a stream of one job
	gone  bool     // the job was deleted
	log   *logTail // nil if not requested
	ended bool
}

// Close closes the stream.
func (s *Stream) Close() {
	s.listener.Close()
	s.follower.open.Add(-1)
}

// Wait returns true when Next might have messages, and false when one of the channels is
// closed. A stream spends nearly all of its time here.
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

// pause waits until the next delivery is allowed, so that many events become one
// delivery.
func (s *Stream) pause(done, stop <-chan struct{}) bool {
	left := time.Until(s.nextDelivery)
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

// Next returns the messages to send, or none. From time to time, and once it has returned
// everything available at the start, it returns a heartbeat: a message without an event.
// The error is io.EOF after the last message, and Unauthorized once the caller's key is
// no longer valid.
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
		return s.heartbeatMessage(), nil
	}
	return out, nil
}

// logTime returns a channel that receives when the log should be polled, or nil if
// nothing is written to it.
func (s *Stream) logTime() <-chan time.Time {
	if s.log == nil || s.isOver() || s.job.Status != app.Running {
		return nil
	}
	return time.After(logEvery)
}

// heartbeatMessage returns a heartbeat. It includes the position up to which the client has all
// events unless the client already has it.
func (s *Stream) heartbeatMessage() []Message {
	if s.lastID == s.ID() {
		return []Message{{}}
	}
	return []Message{s.stamp(Message{})}
}

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
		s.nextDelivery = time.Now().Add(deliveryPause + time.Duration(s.follower.open.Load())*restForEach)
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

// catchUp returns the next events from the store.
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

// pick returns messages for the events that the stream selects, and advances the position
// past all of them.
func (s *Stream) pick(all []*app.Event) (out []Message) {
	for _, e := range all {
		if e.ID.Number <= s.place.Number {
			continue // already read from the store
		}
		s.place = e.ID
		if s.selects(e) {
			s.noteEvent(e)
			out = append(out, s.message(e))
		}
	}
	return out
}

// messagesOf returns messages for the news of a listener.
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

// noteEvent updates the state of a stream of one job.
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

// stamp sets the ID of a message to the current position.
func (s *Stream) stamp(m Message) Message {
	s.lastID = s.ID()
	m.ID = s.lastID
	return m
}

// ID returns the current position as a message ID.
func (s *Stream) ID() string {
	if s.log == nil {
		return s.place.String()
	}
	return s.place.String() + "." + s.log.String()
}

// reset tells the client to list the jobs again. A stream of one job sends the job's
// current state instead.
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
	data, _ := strictjson.Encode(map[string]string{"message": why + " List the jobs again; new events follow."}) // can't fail: it has only strings
	return Message{Event: kindReset, Data: data}
}

// present returns messages that describe a job's current state. Only the last one
// advances the position, so that a client that misses it starts again.
func (s *Stream) present(j *app.Job) (out []Message) {
	s.job = j.Summary()
	for _, e := range app.PresentEvents(j) {
		out = append(out, Message{Event: string(e.Kind), Data: e.Data})
	}
	out[len(out)-1] = s.stamp(out[len(out)-1])
	return out
}

// isOver reports whether this is a stream of one job that has finished.
func (s *Stream) isOver() bool { return s.gone || s.job != nil && s.job.Status.Finished() }

func (s *Stream) endMessage() Message {
	s.ended = true
	data, _ := strictjson.Encode(struct { // can't fail: it has only strings
		ID     app.JobID  `json:"jobId"`
		Name   string     `json:"jobName"`
		Status app.Status `json:"status"`
	}{s.job.ID, s.job.Name, s.job.Status})
	return s.stamp(Message{Event: kindEnd, Data: data})
}

// readLog returns messages with the next lines of the log.
func (s *Stream) readLog(ctx context.Context) ([]Message, error) {
	parts, err := s.log.readParts(ctx, s.job)
	if errors.Is(err, fault.NotFound) {
		return nil, nil // the job was just deleted; an event will follow
	}
	out := make([]Message, 0, len(parts))
	for _, p := range parts {
		data, _ := strictjson.Encode(p) // can't fail: the log text is valid UTF-8
		s.log.place = p.end
		out = append(out, s.stamp(Message{Event: kindLog, Data: data}))
	}
	return out, err
}
