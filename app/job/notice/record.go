// Package notice defines the records of notifications, which inform people and programs
// about jobs, and their self-contained rules: where notifications can be sent, how they
// are signed, and when they are retried.
package notice

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"molrun/app/base/unit"
)

// Event is the subject of a notification.
type Event string

// The events.
const (
	JobStarted   Event = "job.started"
	JobCompleted Event = "job.completed"
	JobFailed    Event = "job.failed"
	Test         Event = "webhook.test"
)

// DefaultEvents are the events sent to a webhook that does not select any.
var DefaultEvents = []Event{JobCompleted, JobFailed}

// Hook is a webhook of an organization. The one with Submissions set has no URL; its
// secret signs the notifications requested by submissions.
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
	OldSecret    string    `json:"oldSecret,omitempty"` // valid until OldUntil after a rotation
	OldUntil     unit.Time `json:"oldUntil,omitzero"`
}

// Wants reports whether the hook receives notifications of an event.
func (h *Hook) Wants(e Event) bool {
	return !h.Submissions && !h.Disabled && slices.Contains(h.Events, e)
}

// Secrets returns the secrets that sign messages.
func (h *Hook) Secrets(now time.Time) []string {
	if h.OldSecret != "" && now.Before(h.OldUntil.Time) {
		return []string{h.Secret, h.OldSecret}
	}
	return []string{h.Secret}
}

// State is the state of a delivery.
type State string

// The states.
const (
	Pending   State = "pending" // to be sent or retried
	Delivered State = "delivered"
	Abandoned State = "failed"
)

// Delivery is one notification to one receiver.
type Delivery struct {
	ID           string          `json:"id"`
	Message      string          `json:"message"` // identifies the event to all receivers
	Organization string          `json:"organization"`
	Hook         string          `json:"hook,omitempty"` // "" if requested by the submission
	Job          string          `json:"job,omitempty"`
	JobName      string          `json:"jobName,omitempty"`
	Event        Event           `json:"event"`
	Target       string          `json:"target"`
	Body         json.RawMessage `json:"body,omitempty"` // body for webhooks; cleared when the delivery has ended
	State        State           `json:"state"`
	Attempts     int             `json:"attempts"`
	Status       int             `json:"status,omitempty"` // of the last response
	Error        string          `json:"error,omitempty"`  // of the last attempt
	CreatedAt    unit.Time       `json:"createdAt"`
	NextAt       unit.Time       `json:"nextAt,omitzero"` // of the next attempt
	EndedAt      unit.Time       `json:"endedAt,omitzero"`
}

// Log returns the delivery log that contains the delivery.
func (d *Delivery) Log() Log { return Log{d.Organization, d.Hook} }

// Log identifies the deliveries to one hook or, without Hook, those requested by an
// organization's submissions.
type Log struct{ Organization, Hook string }

// Limits of one log.
const (
	MaxPending = 10_000
	MaxEnded   = 500 // the oldest are deleted
)

// Queue returns the name of the receiver's queue, unique across organizations. A receiver
// that hangs only delays the deliveries in its own queue.
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

// ParseQueue returns the organization of a queue, and whether its receiver is a URL named
// in submissions.
func ParseQueue(queue string) (organization string, requested bool) {
	organization, name, _ := strings.Cut(queue, "\n")
	return organization, strings.HasPrefix(name, requestedQueue)
}

func (d *Delivery) markEnded(s State, now time.Time) {
	d.State, d.EndedAt = s, unit.At(now)
	d.NextAt, d.Body = unit.Time{}, nil
}
