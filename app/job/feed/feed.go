package feed

import (
	"molrun/app"
	"molrun/app/base/events"
)

// Feed passes events on to those who listen.
type Feed struct{ events.Hub[*Event] }

// Listener hears of one topic.
type Listener = events.Listener[*Event]

// News is what a listener hears.
type News = events.News[*Event]

// Publish passes on the entries of a commit, each with its event attached. A job that
// does not run has no progress.
func (f *Feed) Publish(all []events.Entry) {
	for _, entry := range all {
		e := entry.Attached.(*Event)
		e.ID = entry.ID
		if e.Kind != NewMetrics && e.Job.Status != app.Running {
			f.Forget(entry.Owner, string(e.Job.ID))
		}
		if f.Heard(entry.Owner) {
			f.Hub.Publish(entry.Owner, e.ID, e, e.Topics()...)
		}
	}
}

// Progress passes on how far a running job is.
func (f *Feed) Progress(j *app.Job, p app.Progress) {
	e := progress(j, p)
	f.Report(j.Organization, string(j.ID), e, e.Topics()...)
}
