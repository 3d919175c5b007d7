package app

import (
	"encoding/json"
	"fmt"
	"maps"

	"molrun/app/base/events"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// EventKind names an event to clients.
type EventKind string

// The kinds of events about jobs. Progress is never stored: only the latest counts.
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
	Job  *Job            // what an event is selected by: no settings, inputs, metrics
	Was  *Job            // the same before the change; nil if it is of no interest
	Data json.RawMessage // what clients see
}

// Kinds of topics.
const (
	TopicAll   = '*' // jobs and batches, not rows
	TopicUser  = 'u' // the same of one user, by e-mail address
	TopicBatch = 'b' // a batch and its rows, by its name or ID
	TopicName  = 'n' // anything of that name
)

// Topics returns what an event is about.
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

// EventsOf returns what a change tells listeners: nothing, if what they follow is as
// it was, and nothing of the beginning of a row, which begins with its batch. minor
// says that no event is lost if a later change of the same job takes its place.
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

// unseenStart reports whether a job ran whose end was recorded together with its start,
// since it took less time than it takes to look. Jobs of a batch do without the start:
// a batch has thousands of them, and events are kept up to a number.
func unseenStart(old, j *Job) bool {
	return old.Status == Queued && j.Status.Finished() && !j.StartedAt.Equal(old.StartedAt.Time) && j.Private.Batch == ""
}

// startEvent returns the event of a start that was recorded only with the end. was is the job
// before, without what events leave out.
func startEvent(was, j *Job) *Event {
	b := j.Summary()
	b.Status, b.StatusReason = Running, ""
	b.CompletedAt, b.ResultBytes, b.Failure, b.Counts = unit.Time{}, nil, nil, was.Counts
	b.forgetAttempt()
	b.Private = was.Private // the attempt goes on: its end is what releases the job
	data, _ := b.Encode()   // it was encoded before, with more in it
	return &Event{Kind: EventJobChanged, Job: b, Was: was, Data: strictjson.Append(data, "previousStatus", was.Status)}
}

// PresentEvents returns the events that describe a job to a client without earlier ones.
func PresentEvents(j *Job) (all []*Event) {
	if j.Metrics != nil && j.Status.Finished() {
		all = append(all, metricsEvent(j, *j.Metrics))
	}
	data, _ := j.Summary().Encode() // it was encoded before
	return append(all, &Event{Kind: EventJobChanged, Job: j.Summary(), Data: data})
}

// jobRef names the job of an event.
type jobRef struct {
	ID    JobID  `json:"jobId"`
	Name  string `json:"jobName"`
	Email string `json:"jobEmail"`
	Batch string `json:"batch,omitempty"`
}

func jobRefOf(j *Job) jobRef { return jobRef{j.ID, j.Name, j.Email, j.Batch} }

// maxEventResults bounds the figures within an event. Larger ones are in the record.
const maxEventResults = 32 << 10

func metricsEvent(j *Job, m Metrics) *Event {
	if len(m.Results) > maxEventResults {
		m.Results = nil
	}
	data, _ := strictjson.Encode(struct { // figures that were encoded before cannot fail
		jobRef
		Metrics Metrics `json:"metrics"`
	}{jobRefOf(j), m})
	return &Event{Kind: EventMetrics, Job: j.Summary(), Data: data}
}

// DeletionEvent is the event of a deleted job.
func DeletionEvent(j *Job) *Event {
	data, _ := strictjson.Encode(jobRefOf(j)) // texts cannot fail
	return &Event{Kind: EventJobDeleted, Job: j.Summary(), Data: data}
}

// NewProgressEvent is the event of new progress of a running job.
func NewProgressEvent(j *Job, p Progress) *Event {
	data, _ := strictjson.Encode(struct { // Progress has no number that JSON has not
		jobRef
		Progress Progress `json:"progress"`
	}{jobRefOf(j), p})
	b := j.Summary()
	b.Status = Running
	return &Event{Kind: EventProgress, Job: b, Data: data}
}

// storedEvent is an event as it is stored. The job is read out of what clients see.
type storedEvent struct {
	Kind  EventKind          `json:"kind"`
	Batch JobID              `json:"batch,omitempty"` // of a row
	Job   *storedEventLabels `json:"job,omitempty"`   // where what clients see does not say
	Was   *storedEventLabels `json:"was,omitempty"`   // where it differs
	Data  json.RawMessage    `json:"data,omitempty"`
}

// storedEventLabels is what filters look at beyond what never changes.
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

// Encode returns the event for storage, without its ID. The data, which are most of it,
// were encoded before and are not parsed again: the store's only writer waits for it.
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
	text = append(append(text, head[:len(head)-1]...), data...) // the head has a kind, and no data
	return append(append(text, e.Data...), '}'), nil
}

// DecodeEvent reads what Encode returns.
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
