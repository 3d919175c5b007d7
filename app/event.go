package app

import (
	"encoding/json"
	"fmt"
	"maps"

	"molrun/app/base/events"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// EventKind is the name of a kind of event, as sent to clients.
type EventKind string

// The kinds of job events. Progress is never stored, since only the latest matters.
const (
	EventJobChanged EventKind = "job"
	EventJobDeleted EventKind = "deleted"
	EventMetrics    EventKind = "metrics"
	EventProgress   EventKind = "progress"
)

// Event describes a change of one job.
type Event struct {
	ID   events.ID // zero for progress
	Kind EventKind
	Job  *Job            // job to filter by, without settings, inputs and metrics
	Was  *Job            // the same before the change; nil if irrelevant
	Data json.RawMessage // data sent to clients
}

// Kinds of topics.
const (
	TopicAll   = '*' // jobs and batches, not rows
	TopicUser  = 'u' // jobs and batches of one user, by e-mail address
	TopicBatch = 'b' // a batch and its rows, by its name or ID
	TopicName  = 'n' // anything with that name
)

// Topics returns the topics of an event.
func (e *Event) Topics() []events.Topic {
	j := e.Job
	all := []events.Topic{{Kind: TopicName, Of: j.Name}}
	if row := j.Private.Batch; row != "" {
		return append(all, events.Topic{Kind: TopicBatch, Of: string(row)}, events.Topic{Kind: TopicBatch, Of: j.Batch})
	}
	all = append(all, events.Topic{Kind: TopicUser, Of: j.Email}, events.Topic{Kind: TopicAll})
	if j.IsBatch() {
		all = append(all, events.Topic{Kind: TopicBatch, Of: string(j.ID)}, events.Topic{Kind: TopicBatch, Of: j.Name})
	}
	return all
}

// EventsOf returns the events of a change. There are none if nothing that clients can
// follow has changed, or for the creation of a row, which its batch announces. minor
// reports whether a later change of the same job can replace the events.
func EventsOf(old *Job, now EncodedJob) (all []*Event, minor bool) {
	j := now.Job
	if old == nil {
		if j.Private.Batch == "" {
			all = append(all, &Event{Kind: EventJobChanged, Job: now.Summary, Data: now.SummaryJSON})
		}
		return all, false
	}
	minor = old.Status == j.Status && old.StatusReason == j.StatusReason && old.Pinned == j.Pinned &&
		old.Note == j.Note && maps.Equal(old.Tags, j.Tags)
	if minor && (!j.IsBatch() || *old.Counts == *j.Counts) {
		return nil, false
	}
	was := old.Summary()
	if unseenStart(old, j) {
		start := startEvent(was, j)
		all = append(all, start)
		was = start.Job
	}
	e := &Event{Kind: EventJobChanged, Job: now.Summary, Was: was, Data: now.SummaryJSON}
	if was.Status != j.Status {
		e.Data = strictjson.Append(e.Data, "previousStatus", was.Status)
	}
	if m := j.Metrics; m != nil && j.Status.Finished() && !old.Status.Finished() {
		all = append(all, metricsEvent(j, *m))
	}
	return append(all, e), minor
}

// unseenStart reports whether a job started and ended between two polls, so that its
// start was recorded together with its end. Rows of a batch are excluded: a batch has
// thousands of them, and the number of stored events is limited.
func unseenStart(old, j *Job) bool {
	return old.Status == Queued && j.Status.Finished() && !j.StartedAt.Equal(old.StartedAt.Time) && j.Private.Batch == ""
}

// startEvent returns the event for a start that was recorded only together with the end.
// was is the summary of the job before the change.
func startEvent(was, j *Job) *Event {
	b := j.Summary()
	b.Status, b.StatusReason = Running, ""
	b.CompletedAt, b.ResultBytes, b.Failure, b.Counts = unit.Time{}, nil, nil, was.Counts
	b.forgetAttempt()
	b.Private = was.Private // the attempt is still running; only its end releases the job
	data, _ := b.Encode()   // can't fail: the whole summary was encoded before
	return &Event{Kind: EventJobChanged, Job: b, Was: was, Data: strictjson.Append(data, "previousStatus", was.Status)}
}

// PresentEvents returns events that describe the current state of a job to a client
// without earlier events.
func PresentEvents(j *Job) (all []*Event) {
	if j.Metrics != nil && j.Status.Finished() {
		all = append(all, metricsEvent(j, *j.Metrics))
	}
	data, _ := j.Summary().Encode() // can't fail: it was encoded before
	return append(all, &Event{Kind: EventJobChanged, Job: j.Summary(), Data: data})
}

// jobRef identifies the job of an event.
type jobRef struct {
	ID    JobID  `json:"jobId"`
	Name  string `json:"jobName"`
	Email string `json:"jobEmail"`
	Batch string `json:"batch,omitempty"`
}

func jobRefOf(j *Job) jobRef { return jobRef{j.ID, j.Name, j.Email, j.Batch} }

// maxEventResults limits the size of the metrics in an event, in bytes. Larger ones are
// only in the record.
const maxEventResults = 32 << 10

func metricsEvent(j *Job, m Metrics) *Event {
	if len(m.Results) > maxEventResults {
		m.Results = nil
	}
	data, _ := strictjson.Encode(struct { // can't fail: the metrics were encoded before
		jobRef
		Metrics Metrics `json:"metrics"`
	}{jobRefOf(j), m})
	return &Event{Kind: EventMetrics, Job: j.Summary(), Data: data}
}

// DeletionEvent returns the event of a deleted job.
func DeletionEvent(j *Job) *Event {
	data, _ := strictjson.Encode(jobRefOf(j)) // can't fail: it has only strings
	return &Event{Kind: EventJobDeleted, Job: j.Summary(), Data: data}
}

// NewProgressEvent returns the event for new progress of a running job.
func NewProgressEvent(j *Job, p Progress) *Event {
	data, _ := strictjson.Encode(struct { // can't fail: JSON can represent every Progress
		jobRef
		Progress Progress `json:"progress"`
	}{jobRefOf(j), p})
	b := j.Summary()
	b.Status = Running
	return &Event{Kind: EventProgress, Job: b, Data: data}
}

// storedEvent is the stored form of an event. The job is decoded from the client data.
type storedEvent struct {
	Kind  EventKind          `json:"kind"`
	Batch JobID              `json:"batch,omitempty"` // of a row
	Job   *storedEventLabels `json:"job,omitempty"`   // if not part of the client data
	Was   *storedEventLabels `json:"was,omitempty"`   // if it differs
	Data  json.RawMessage    `json:"data,omitempty"`
}

// storedEventLabels has the fields that filters use and that can change.
type storedEventLabels struct {
	Type   string            `json:"type,omitempty"`
	Status Status            `json:"status"`
	Tags   map[string]string `json:"tags,omitempty"`
	Note   string            `json:"note,omitempty"`
	Counts *Counts           `json:"subjobCounts,omitempty"` // of a batch
}

func labelsOf(j *Job) *storedEventLabels {
	return &storedEventLabels{j.Type, j.Status, j.Tags, j.Note, j.Counts}
}

func (l *storedEventLabels) addTo(j *Job) {
	if l != nil {
		j.Type, j.Status, j.Tags, j.Note, j.Counts = l.Type, l.Status, l.Tags, l.Note, l.Counts
	}
}

// Encode returns the event for storage, without its ID. Data, the largest part, is
// already encoded and is not parsed again, so as not to delay the store's only writer.
func (e *Event) Encode() ([]byte, error) {
	s := storedEvent{Kind: e.Kind, Batch: e.Job.Private.Batch}
	if e.Kind != EventJobChanged {
		s.Job = labelsOf(e.Job)
	}
	if e.Was != nil {
		s.Was = labelsOf(e.Was)
	}
	head, err := strictjson.Encode(s)
	if err != nil {
		return nil, err
	}
	const data = `,"data":`
	text := make([]byte, 0, len(head)+len(data)+len(e.Data))
	text = append(append(text, head[:len(head)-1]...), data...) // head contains the kind but no data
	return append(append(text, e.Data...), '}'), nil
}

// DecodeEvent decodes the output of Encode.
func DecodeEvent(entry events.Entry) (*Event, error) {
	var s storedEvent
	e := &Event{ID: entry.ID, Job: &Job{}}
	if err := json.Unmarshal(entry.Value, &s); err != nil {
		return nil, fmt.Errorf("read event %s: %w", entry.ID, err)
	}
	if err := json.Unmarshal(s.Data, e.Job); err != nil {
		return nil, fmt.Errorf("read the job of event %s: %w", entry.ID, err)
	}
	e.Kind, e.Data = s.Kind, s.Data
	e.Job.Organization, e.Job.Private.Batch = entry.Owner, s.Batch
	s.Job.addTo(e.Job)
	if s.Was != nil {
		was := *e.Job
		s.Was.addTo(&was)
		e.Was = &was
	}
	return e, nil
}
