// Package notice has the records of notices, which inform people and programs that jobs
// have ended, and the rules about them that need nothing else: where they may go, how
// they are signed, when they are repeated.
package notice

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"molrun/app/base/unit"
)

// Event names the subject of a notice.
type Event string

// The events.
const (
	JobStarted   Event = "job.started"
	JobCompleted Event = "job.completed"
	JobFailed    Event = "job.failed"
	Test         Event = "webhook.test"
)

// DefaultEvents are what a webhook gets that asks for none.
var DefaultEvents = []Event{JobCompleted, JobFailed}

// Hook is a receiver of the notices of an organization. The one of Submissions has no
// URL: with its secret are signed those that submissions asked for.
type Hook struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Submissions  bool      `json:"submissions,omitempty"`
	URL          string    `json:"url,omitempty"`
	Events       []Event   `json:"events,omitempty"`
	Disabled     bool      `json:"disabled,omitempty"`
	CreatedAt    unit.Time `json:"createdAt"`
	CreatedBy    string    `json:"createdBy"`
	Secret       string    `json:"secret"`
	OldSecret    string    `json:"oldSecret,omitempty"` // of before it was rotated
	OldUntil     unit.Time `json:"oldUntil,omitzero"`
}

// Wants reports whether the hook gets notices of an event.
func (h *Hook) Wants(e Event) bool {
	return !h.Submissions && !h.Disabled && slices.Contains(h.Events, e)
}

// Secrets returns those with which messages are signed.
func (h *Hook) Secrets(now time.Time) []string {
	if h.OldSecret != "" && now.Before(h.OldUntil.Time) {
		return []string{h.Secret, h.OldSecret}
	}
	return []string{h.Secret}
}

// State is what has become of a delivery.
type State string

// The states.
const (
	Pending   State = "pending" // to be sent, or sent again
	Delivered State = "delivered"
	GivenUp   State = "failed"
)

// Delivery is one notice on its way to one receiver.
type Delivery struct {
	ID           string          `json:"id"`
	Message      string          `json:"message"` // identifies the event to all receivers
	Organization string          `json:"organization"`
	Hook         string          `json:"hook,omitempty"` // "": the submission asked for it
	Job          string          `json:"job,omitempty"`
	JobName      string          `json:"jobName,omitempty"`
	Event        Event           `json:"event"`
	Target       string          `json:"target"`
	Body         json.RawMessage `json:"body,omitempty"` // what webhooks get; gone when it has ended
	State        State           `json:"state"`
	Attempts     int             `json:"attempts"`
	Status       int             `json:"status,omitempty"` // of the last answer
	Error        string          `json:"error,omitempty"`  // of the last attempt
	CreatedAt    unit.Time       `json:"createdAt"`
	NextAt       unit.Time       `json:"nextAt,omitzero"` // of the next attempt
	EndedAt      unit.Time       `json:"endedAt,omitzero"`
}

// Log names the delivery log that has the delivery.
func (d *Delivery) Log() Log { return Log{d.Organization, d.Hook} }

// Log is the deliveries of one hook, or those that submissions of an organization have
// asked for.
type Log struct{ Organization, Hook string }

// Limits of one log.
const (
	MaxPending = 10_000
	MaxEnded   = 500 // the oldest are forgotten
)

// Queue names the receiver among those of all organizations. One that hangs only delays
// the deliveries in its own queue.
func (d *Delivery) Queue() string {
	name := "hook " + d.Hook
	if d.Hook == "" {
		name = "mail"
		if u, err := url.Parse(d.Target); err == nil && u.Host != "" {
			name = requestedQueue + strings.ToLower(u.Host)
		}
	}
	return d.Organization + "\n" + name
}

const requestedQueue = "asked "

// ParseQueue returns the organization of a queue, and whether its receiver is one that
// users name in a submission.
func ParseQueue(queue string) (organization string, requested bool) {
	organization, name, _ := strings.Cut(queue, "\n")
	return organization, strings.HasPrefix(name, requestedQueue)
}

// markEnded ends a delivery.
func (d *Delivery) markEnded(s State, now time.Time) {
	d.State, d.EndedAt = s, unit.At(now)
	d.NextAt, d.Body = unit.Time{}, nil
}
