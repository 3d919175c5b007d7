package delivery

import (
	"crypto/rand"
	"encoding/json"
	"time"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/job/notice"
)

// JobEvent is an event of a job that receivers can be notified of.
type JobEvent struct {
	notice.Event
	Message string // message ID, the same for all receivers
	job     app.EncodedJob
	at      time.Time
}

// EventsOf returns the events of a change of a job: it has started or ended. Only jobs
// and batches have events, not the rows of batches. For a short job, the end can be the
// first change recorded.
func EventsOf(old *app.Job, now app.EncodedJob) (all []JobEvent) {
	j := now.Job
	if old == nil || j.Private.Batch != "" {
		return nil
	}
	add := func(e notice.Event) {
		all = append(all, JobEvent{e, "msg_" + rand.Text(), now, time.Now()})
	}
	if old.StartedAt.IsZero() && !j.StartedAt.IsZero() {
		add(notice.JobStarted)
	}
	if !old.Status.Finished() && j.Status.Finished() {
		add(endings[j.Status])
	}
	return all
}

var endings = map[app.Status]notice.Event{app.Completed: notice.JobCompleted, app.Failed: notice.JobFailed}

// DeliveryTo returns a delivery of the event to a hook.
func (t JobEvent) DeliveryTo(h *notice.Hook) (*notice.Delivery, error) {
	d := t.newDelivery(h.URL)
	d.Hook = h.ID
	return d, t.addBody(d)
}

// RequestedDeliveries returns the deliveries requested by the job's submission.
// Submissions can only request notifications of the end of a job.
func (t JobEvent) RequestedDeliveries() (all []*notice.Delivery, err error) {
	if t.Event == notice.JobStarted {
		return nil, nil
	}
	for _, target := range t.job.Job.Private.Notify {
		d := t.newDelivery(target)
		if err := t.addBody(d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (t JobEvent) newDelivery(target string) *notice.Delivery {
	j := t.job.Job
	return &notice.Delivery{
		ID: newID(t.at), Message: t.Message, Organization: j.Organization, Job: string(j.ID), JobName: j.Name,
		Event: t.Event, Target: target, State: notice.Pending, CreatedAt: unit.At(t.at), NextAt: unit.At(t.at),
	}
}

func (t JobEvent) addBody(d *notice.Delivery) (err error) {
	d.Body, err = body(t.Event, t.at, t.job.SummaryJSON)
	return err
}

// body returns the body of a webhook request according to Standard Webhooks.
func body(e notice.Event, at time.Time, data json.RawMessage) (json.RawMessage, error) {
	return strictjson.Encode(struct {
		Type      notice.Event    `json:"type"`
		Timestamp unit.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}{e, unit.At(at), data})
}

// newID returns a unique ID. IDs sort by time.
func newID(at time.Time) string {
	id := sortid.First(at)
	rand.Read(id[6:]) // never fails (crypto/rand)
	return id.String()
}
