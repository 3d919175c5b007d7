package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Event is something that has happened to a job.
type Event struct {
	ID   string          // the place in the order of events; "" if it has none of its own
	Name string          // job, metrics, progress, deleted, log, reset, end
	Data json.RawMessage // an object
}

// LogLines is the data of a log event.
type LogLines struct {
	Attempt int    `json:"attempt"`
	Offset  int64  `json:"offset"`
	Text    string `json:"text"` // whole lines
}

// maxEvent bounds a line of a stream. A record with large settings is the longest.
const maxEvent = 64 << 20

// silence is how long a stream may say nothing; the service says something every 15
// seconds.
const silence = time.Minute

// ErrSilent is the error of a stream that says nothing any more.
var ErrSilent = errors.New("the service has gone silent")

// JobEvents yields what happens to a job until it has ended; the last event is named
// end. A stream that breaks ends with an error; last, the ID of the last event, continues
// behind it.
func (c *Client) JobEvents(ctx context.Context, name string, logs bool, last string) iter.Seq2[Event, error] {
	q := url.Values{}
	if logs {
		q.Set("logs", "true")
	}
	return c.stream(ctx, path("jobs", name, "events"), q, last)
}

// Events yields what happens to the jobs that a query of GET /jobs selects, without an
// end.
func (c *Client) Events(ctx context.Context, query url.Values, last string) iter.Seq2[Event, error] {
	return c.stream(ctx, "/events", query, last)
}

func (c *Client) stream(ctx context.Context, path string, query url.Values, last string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		received := time.AfterFunc(silence, func() { cancel(ErrSilent) })
		defer received.Stop()
		resp, err := c.openEvents(ctx, path, query, last)
		if err != nil {
			yield(Event{}, causeOf(ctx, err))
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxEvent)
		for {
			e, err := readEvent(lines, func() { received.Reset(silence) })
			if err != nil {
				yield(Event{}, causeOf(ctx, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// causeOf returns why ctx was cancelled, if it was.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (c *Client) openEvents(ctx context.Context, path string, query url.Values, last string) (*http.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-api-key", c.key)
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return c.roundTrip(r)
}

// readEvent reads the next event that has a name or an ID; received is called for each
// line.
func readEvent(lines *bufio.Scanner, received func()) (e Event, err error) {
	var data []string
	for lines.Scan() {
		received()
		line := lines.Text()
		if line == "" {
			if e.Name == "" && e.ID == "" {
				data = nil
				continue
			}
			e.Data = json.RawMessage(strings.Join(data, "\n"))
			return e, nil
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			data = append(data, value)
		}
	}
	if err := lines.Err(); err != nil {
		return e, fmt.Errorf("events: %w", err)
	}
	return e, fmt.Errorf("events: %w", io.ErrUnexpectedEOF)
}
