package storage

import (
	"errors"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
	"molrun/storage/outbox"
)

// Buckets of records. Those that follow from them are named beside their
// entries.
const (
	bucketJobs        = "jobs"
	bucketJobsPrivate = "jobs.private"
	bucketUploads     = "uploads"
	bucketShares      = "shares"
	bucketKeys        = "keys"
	bucketUsers       = "users"
	bucketSessions    = "sessions"
	bucketDefinitions = "definitions"
)

// tx implements app.Tx. What it returns is copied out of the transaction.
type tx struct {
	*kv.Tx
	outbox.Records
}

func newTx(t *kv.Tx) tx { return tx{t, outbox.Records{Tx: t}} }

var _ app.Tx = tx{}

// present turns NotFound into nil.
func present[T any](v *T, err error) (*T, error) {
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	return v, err
}

// idOf parses an ID that was checked when its record was put.
func idOf[T ~string](text T) sortid.ID {
	id, _ := sortid.Parse(string(text))
	return id
}

// jobAt returns the job of an index entry.
func jobAt(k kv.Key) (app.JobID, error) {
	id, err := k.LastID()
	return app.JobID(id.String()), err
}

// statusLetter represents a status in keys; "" represents all of them.
func statusLetter(s app.Status) byte {
	switch s {
	case app.Queued:
		return 'Q'
	case app.Running:
		return 'R'
	case app.Completed:
		return 'C'
	case app.Failed:
		return 'F'
	}
	return '*'
}
