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

// Event is an event of a job.
type Event struct {
	ID   string          // position in the order of events; "" if none
	Name string          // job, metrics, progress, deleted, log, reset, end
	Data json.RawMessage // an object
}

// LogLines is the data of a log event.
type LogLines struct {
	Attempt int    `json:"attempt"`
	Offset  int64  `json:"offset"`
	Text    string `json:"text"` // complete lines
}

// maxEvent limits the length of a line in a stream. The longest is a job record with
// large settings.
const maxEvent = 64 << 20

// streamTimeout is the timeout of a stream; the service sends something every 15 seconds.
const streamTimeout = time.Minute

// ErrTimedOut is the error of a stream that has timed out.
var ErrTimedOut = errors.New("event stream timed out")

// JobEvents yields the events of a job until the job has finished; the last event is
// named end. A broken stream ends with an error. To continue after it, pass the ID of the
// last event as last.
func (c *Client) JobEvents(ctx context.Context, name string, logs bool, last string) iter.Seq2[Event, error] {
	q := url.Values{}
	if logs {
		q.Set("logs", "true")
	}
	return c.stream(ctx, path("jobs", name, "events"), q, last)
}

// Events yields the events of the jobs that a GET /jobs query selects. The sequence ends
// only with an error.
func (c *Client) Events(ctx context.Context, query url.Values, last string) iter.Seq2[Event, error] {
	return c.stream(ctx, "/events", query, last)
}

func (c *Client) stream(ctx context.Context, path string, query url.Values, last string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		received := time.AfterFunc(streamTimeout, func() { cancel(ErrTimedOut) })
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
			e, err := readEvent(lines, func() { received.Reset(streamTimeout) })
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

// causeOf returns why ctx was canceled, otherwise err.
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

// readEvent reads the next event with a name or ID. It calls received for each line.
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
