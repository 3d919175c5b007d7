package follow

import (
	"molrun/app"
	"molrun/app/base/events"
)

// eventFeed passes events on to those who listen.
type eventFeed struct{ events.Hub[*app.Event] }

// eventListener receives the events of one topic.
type eventListener = events.Listener[*app.Event]

// eventNews is the news of a listener.
type eventNews = events.News[*app.Event]

// Publish passes on the entries of a commit that is durable, each with its event attached.
// A job that does not run has no progress.
func (f *eventFeed) Publish(all []events.Entry) {
	for _, entry := range all {
		e := entry.Attached.(*app.Event)
		e.ID = entry.ID
		if e.Kind != app.EventMetrics && e.Job.Status != app.Running {
			f.Forget(entry.Owner, string(e.Job.ID))
		}
		if f.Heard(entry.Owner) {
			f.Hub.Publish(entry.Owner, e.ID, e, e.Topics()...)
		}
	}
}

// Progress passes on how far a running job is.
func (f *eventFeed) Progress(j *app.Job, p app.Progress) {
	e := app.NewProgressEvent(j, p)
	f.Report(j.Organization, string(j.ID), e, e.Topics()...)
}
