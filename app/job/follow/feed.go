package follow

import (
	"molrun/app"
	"molrun/app/base/events"
)

// eventFeed distributes events to listeners.
type eventFeed struct{ events.Hub[*app.Event] }

// eventListener receives the events of one topic.
type eventListener = events.Listener[*app.Event]

// eventNews is the new events for a listener.
type eventNews = events.News[*app.Event]

// Publish distributes the entries of a durable commit, each with its event attached. It
// drops the progress of jobs that are not running.
func (f *eventFeed) Publish(all []events.Entry) {
	for _, entry := range all {
		e := entry.Attached.(*app.Event)
		e.ID = entry.ID
		if e.Kind != app.EventMetrics && e.Job.Status != app.Running {
			f.Forget(entry.Owner, string(e.Job.ID))
		}
		if f.HasListeners(entry.Owner) {
			f.Hub.Publish(entry.Owner, e.ID, e, e.Topics()...)
		}
	}
}

// Progress distributes the progress of a running job.
func (f *eventFeed) Progress(j *app.Job, p app.Progress) {
	e := app.NewProgressEvent(j, p)
	f.Report(j.Organization, string(j.ID), e, e.Topics()...)
}
