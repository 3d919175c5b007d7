package storage

import (
	"fmt"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/storage/kv"
)

// bucketEvents holds the latest events of each organization.
const bucketEvents = "events"

// Limits on the events kept per organization: enough for a few days of a lab's jobs, or
// for ten seconds of continuous submissions.
const (
	maxEvents     = 32 << 10
	maxEventBytes = 16 << 20
)

// noteChange records the events of a change in the transaction that makes it.
func noteChange(t *kv.Tx, old *app.Job, now app.EncodedJob) error {
	all, minor := app.EventsOf(old, now)
	for _, e := range all {
		instead := ""
		if minor {
			instead = string(now.Job.ID)
		}
		if err := noteEvent(t, e, instead); err != nil {
			return err
		}
	}
	return nil
}

// noteDeletion records that a job was deleted. Deleting a batch implies deleting its
// rows, so these get no events.
func noteDeletion(t *kv.Tx, old *app.Job) error {
	if batch := old.Private.Batch; batch != "" {
		if key := idOf(batch); t.Bucket(bucketJobs).Get(key[:]) == nil {
			return nil
		}
	}
	return noteEvent(t, app.DeletionEvent(old), "")
}

func noteEvent(t *kv.Tx, e *app.Event, instead string) error {
	value, err := e.Encode()
	if err != nil {
		return fmt.Errorf("note an event of job %s: %w", e.Job.ID, err)
	}
	t.AddNote(kv.Note{Owner: e.Job.Organization, Value: value, Replaces: instead, Attached: e})
	return nil
}

// OnEvents calls notify with the events of each commit, as kv.DB.OnNoted does.
func (s *Store) OnEvents(notify func([]events.Entry)) { s.OnNoted(notify) }
