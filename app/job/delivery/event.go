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

// Told is an event of a job, for whoever wants notice of it.
type Told struct {
	notice.Event
	Message string // its name, the same for all
	job     app.EncodedJob
	at      time.Time
}

// ToldBy returns what a change of a job tells: that it has started or ended. A row tells
// nothing, its batch does. For a short job, its end may be the first thing recorded.
func ToldBy(old *app.Job, now app.EncodedJob) (all []Told) {
	j := now.Job
	if old == nil || j.Private.Batch != "" {
		return nil
	}
	add := func(e notice.Event) {
		all = append(all, Told{e, "msg_" + rand.Text(), now, time.Now()})
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

// To returns the delivery to a hook.
func (t Told) To(h *notice.Hook) (*notice.Delivery, error) {
	d := t.to(h.URL)
	d.Hook = h.ID
	return d, t.addBody(d)
}

// AsAsked returns the deliveries that the job's submission asked for: of its end.
func (t Told) AsAsked() (all []*notice.Delivery, err error) {
	if t.Event == notice.JobStarted {
		return nil, nil
	}
	for _, target := range t.job.Job.Private.Notify {
		d := t.to(target)
		if err := t.addBody(d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (t Told) to(target string) *notice.Delivery {
	j := t.job.Job
	return &notice.Delivery{
		ID: newID(t.at), Message: t.Message, Organization: j.Organization, Job: string(j.ID), JobName: j.Name,
		Event: t.Event, Target: target, State: notice.Pending, CreatedAt: unit.At(t.at), NextAt: unit.At(t.at),
	}
}

func (t Told) addBody(d *notice.Delivery) (err error) {
	d.Body, err = body(t.Event, t.at, t.job.Brief)
	return err
}

// body returns what a webhook gets, by the specification of Standard Webhooks.
func body(e notice.Event, at time.Time, data json.RawMessage) (json.RawMessage, error) {
	return strictjson.Encode(struct {
		Type      notice.Event    `json:"type"`
		Timestamp unit.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}{e, unit.At(at), data})
}

// newID returns an ID that nothing else has. It sorts by time.
func newID(at time.Time) string {
	id := sortid.First(at)
	rand.Read(id[6:]) // never fails (crypto/rand)
	return id.String()
}
