package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// decodeExact decodes JSON. Numbers in values of type any keep all their digits.
func decodeExact(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}

func printEvent(s *session, e client.Event) error {
	if e.Name == "" {
		return nil // only marks a position in the stream
	}
	if s.JSON {
		return s.PrintJSON(struct {
			ID    string          `json:"id,omitempty"`
			Event string          `json:"event"`
			Data  json.RawMessage `json:"data"`
		}{e.ID, e.Name, e.Data})
	}
	j, err := client.Decode[client.Job](e.Data)
	if err != nil {
		return err
	}
	now := time.Now().Format(time.TimeOnly)
	switch e.Name {
	case "job":
		_, head, detail := progressOf(j)
		return s.Print("%s  %-20s  %s", now, terminal.Clean(j.Name), terminal.Clean(strings.TrimSuffix(head+", "+detail, ", ")))
	case "progress":
		return s.Print("%s  %-20s  %.0f %%  %s", now, terminal.Clean(j.Name), 100*j.Progress.Fraction, terminal.Clean(j.Progress.Text))
	}
	return s.Print("%s  %-20s  %s", now, terminal.Clean(j.Name), terminal.Clean(e.Name))
}

// listenAll prints the events of many jobs over one connection.
func listenAll(ctx context.Context, s *session, q url.Values, last *string) error {
	for e, err := range s.API.Events(ctx, q, *last) {
		if err != nil {
			return err
		}
		if e.ID != "" {
			*last = e.ID
		}
		if err := printEvent(s, e); err != nil {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

// page is a session that buffers its output, to draw it all at once.
type page struct {
	*session
	text bytes.Buffer
	to   io.Writer
}

func newPage(s *session) *page {
	p := &page{to: s.Out}
	inner, t := *s, *s.Terminal
	t.Out = &p.text
	inner.Terminal = &t
	p.session = &inner
	return p
}

// flush replaces the screen with the buffered output.
func (p *page) flush(trouble error) error {
	foot := time.Now().Format(time.TimeOnly) + "  Ctrl-C quits"
	if trouble != nil {
		foot = "the service does not respond: " + terminal.Clean(trouble.Error())
	}
	_, err := fmt.Fprintf(p.to, "\x1b[H\x1b[2J%s\n%s\n", p.text.String(), foot)
	return err
}
