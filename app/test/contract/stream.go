package contract

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// isStream reports whether a response continues until one side closes the connection.
func isStream(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
}

// stream is the body of an event stream. It checks each event as it is read.
type stream struct {
	io.ReadCloser
	checker *Checker
	t       testing.TB
	rest    []byte // event that has arrived only in part
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.rest = append(s.rest, p[:n]...)
	for {
		event, rest, complete := bytes.Cut(s.rest, []byte("\n\n"))
		if !complete {
			return n, err
		}
		s.rest = rest
		s.check(string(event))
	}
}

// check validates the data of an event against the schema for its name, for example
// JobEvent for the event job.
func (s *stream) check(event string) {
	name, data := "", ""
	for line := range strings.Lines(event) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			data += value
		}
	}
	if name == "" {
		if data != "" {
			s.t.Errorf("an event has data and no name: %s", event)
		}
		return
	}
	schema := strings.ToUpper(name[:1]) + name[1:] + "Event"
	for _, fault := range s.checker.validate(exchange{request: &http.Request{}}, []byte(data), "components", "schemas", schema) {
		s.t.Errorf("the event %s: %s\n%s", name, fault, event)
	}
}
