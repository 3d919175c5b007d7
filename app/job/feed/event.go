// Package feed says what a change of a job tells those who listen, and passes it on to
// them as soon as it is durable.
package feed

import (
	"encoding/json"
	"fmt"
	"maps"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// Kind names an event to clients.
type Kind string

// The kinds of events about jobs. Progress is never stored: only the latest counts.
const (
	JobChanged  Kind = "job"
	JobDeleted  Kind = "deleted"
	NewMetrics  Kind = "metrics"
	NewProgress Kind = "progress"
)

// Event tells of a change of one job.
type Event struct {
	ID   events.ID // zero for progress
	Kind Kind
	Job  *app.Job        // what an event is selected by: no settings, inputs, metrics
	Was  *app.Job        // the same before the change; nil if it is of no interest
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

// Of returns what a change tells listeners: nothing, if what they follow is as
// it was, and nothing of the beginning of a row, which begins with its batch. minor
// says that no event is lost if a later change of the same job takes its place.
func Of(old *app.Job, now app.EncodedJob) (all []*Event, minor bool) {
	j := now.Job
	if old == nil {
		if j.Private.Batch == "" {
			all = append(all, &Event{Kind: JobChanged, Job: now.Heard, Data: now.Brief})
		}
		return all, false
	}
	minor = old.Status == j.Status && old.StatusReason == j.StatusReason && old.Pinned == j.Pinned &&
		old.Note == j.Note && maps.Equal(old.Tags, j.Tags)
	if minor && (!j.IsBatch() || *old.Counts == *j.Counts) {
		return nil, false
	}
	was := old.Brief()
	if unseenStart(old, j) {
		start := startOf(was, j)
		all = append(all, start)
		was = start.Job
	}
	e := &Event{Kind: JobChanged, Job: now.Heard, Was: was, Data: now.Brief}
	if was.Status != j.Status {
		e.Data = strictjson.Append(e.Data, "previousStatus", was.Status)
	}
	if m := j.Metrics; m != nil && j.Status.Finished() && !old.Status.Finished() {
		all = append(all, newMetrics(j, *m))
	}
	return append(all, e), minor
}

// unseenStart reports whether a job ran whose end was recorded together with its start,
// since it took less time than it takes to look. Jobs of a batch do without the start:
// a batch has thousands of them, and events are kept up to a number.
func unseenStart(old, j *app.Job) bool {
	return old.Status == app.Queued && j.Status.Finished() && !j.StartedAt.Equal(old.StartedAt.Time) && j.Private.Batch == ""
}

// startOf returns the event of a start that was recorded only with the end. was is the job
// before, without what events leave out.
func startOf(was, j *app.Job) *Event {
	b := j.Brief()
	b.Status, b.StatusReason = app.Running, ""
	b.CompletedAt, b.ResultBytes, b.Failure, b.Counts = unit.Time{}, nil, nil, was.Counts
	b.Isolation, b.ProgramVersion, b.Image = "", "", nil
	b.Private = was.Private // the attempt goes on: its end is what releases the job
	data, _ := b.Encode()   // it was encoded before, with more in it
	return &Event{Kind: JobChanged, Job: b, Was: was, Data: strictjson.Append(data, "previousStatus", was.Status)}
}

// Present returns the events that tell how a job is, to who has heard nothing of it.
func Present(j *app.Job) (all []*Event) {
	if j.Metrics != nil && j.Status.Finished() {
		all = append(all, newMetrics(j, *j.Metrics))
	}
	data, _ := j.Brief().Encode() // it was encoded before
	return append(all, &Event{Kind: JobChanged, Job: j.Brief(), Data: data})
}

// jobRef names the job of an event.
type jobRef struct {
	ID    app.JobID `json:"jobId"`
	Name  string    `json:"jobName"`
	Email string    `json:"jobEmail"`
	Batch string    `json:"batch,omitempty"`
}

func refTo(j *app.Job) jobRef { return jobRef{j.ID, j.Name, j.Email, j.Batch} }

// maxEventResults bounds the figures within an event. Larger ones are in the record.
const maxEventResults = 32 << 10

func newMetrics(j *app.Job, m app.Metrics) *Event {
	if len(m.Results) > maxEventResults {
		m.Results = nil
	}
	data, _ := strictjson.Encode(struct { // figures that were encoded before cannot fail
		jobRef
		Metrics app.Metrics `json:"metrics"`
	}{refTo(j), m})
	return &Event{Kind: NewMetrics, Job: j.Brief(), Data: data}
}

// Deletion tells that a job is no more.
func Deletion(j *app.Job) *Event {
	data, _ := strictjson.Encode(refTo(j)) // texts cannot fail
	return &Event{Kind: JobDeleted, Job: j.Brief(), Data: data}
}

// progress tells how far a running job is.
func progress(j *app.Job, p app.Progress) *Event {
	data, _ := strictjson.Encode(struct { // Progress has no number that JSON has not
		jobRef
		Progress app.Progress `json:"progress"`
	}{refTo(j), p})
	b := j.Brief()
	b.Status = app.Running
	return &Event{Kind: NewProgress, Job: b, Data: data}
}

// storedEvent is an event as it is stored. The job is read out of what clients see.
type storedEvent struct {
	Kind  Kind            `json:"kind"`
	Batch app.JobID       `json:"batch,omitempty"` // of a row
	Job   *storedLabels   `json:"job,omitempty"`   // where what clients see does not say
	Was   *storedLabels   `json:"was,omitempty"`   // where it differs
	Data  json.RawMessage `json:"data,omitempty"`
}

// storedLabels is what filters look at beyond what never changes.
type storedLabels struct {
	Type   string            `json:"type,omitempty"`
	Status app.Status        `json:"status"`
	Tags   map[string]string `json:"tags,omitempty"`
	Note   string            `json:"note,omitempty"`
	Counts *app.Counts       `json:"subjobCounts,omitempty"` // of a batch
}

func labelsOf(j *app.Job) *storedLabels {
	return &storedLabels{j.Type, j.Status, j.Tags, j.Note, j.Counts}
}

func (l *storedLabels) addTo(j *app.Job) {
	if l != nil {
		j.Type, j.Status, j.Tags, j.Note, j.Counts = l.Type, l.Status, l.Tags, l.Note, l.Counts
	}
}

// Encode returns the event for storage, without its ID. The data, which are most of it,
// were encoded before and are not parsed again: the store's only writer waits for it.
func (e *Event) Encode() ([]byte, error) {
	s := storedEvent{Kind: e.Kind, Batch: e.Job.Private.Batch}
	if e.Kind != JobChanged {
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

// Decode reads what Encode returns.
func Decode(entry events.Entry) (*Event, error) {
	var s storedEvent
	e := &Event{ID: entry.ID, Job: &app.Job{}}
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
