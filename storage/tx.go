package storage

import (
	"encoding/json"
	"errors"
	"fmt"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// Buckets of records. Derived buckets are defined next to the functions that derive their
// entries.
const (
	bucketJobs        = "jobs"
	bucketJobsPrivate = "jobs.private"
	bucketUploads     = "uploads"
	bucketShares      = "shares"
	bucketHooks       = "hooks"
	bucketDeliveries  = "deliveries"
	bucketKeys        = "keys"
	bucketUsers       = "users"
	bucketSessions    = "sessions"
	bucketDefinitions = "definitions"
)

// tx implements app.Tx. Except for pages of Jobs, its results are copied out of the
// transaction.
type tx struct{ *kv.Tx }

func newTx(t *kv.Tx) tx { return tx{t} }

var _ app.Tx = tx{}

// present converts NotFound to nil.
func present[T any](v *T, err error) (*T, error) {
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	return v, err
}

// decodedRecord decodes a JSON record.
func decodedRecord[T any](noun string, id any, value []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(value, v); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", noun, id, err)
	}
	return v, nil
}

// putRecord stores a record as JSON.
func putRecord[T any](t *kv.Tx, table *kv.Table[T], id sortid.ID, v *T) error {
	old, err := present(table.Read(t, id))
	if err != nil {
		return err
	}
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("put into %s: %w", table.Bucket, err)
	}
	return table.Put(t, id, value, old, v)
}

// idOf parses an ID that was validated when its record was put.
func idOf[T ~string](text T) sortid.ID {
	id, _ := sortid.Parse(string(text))
	return id
}

// jobAt returns the job of an index entry.
func jobAt(k kv.Key) (app.JobID, error) {
	id, err := k.LastID()
	return app.JobID(id.String()), err
}

// statusLetter represents a status in keys. "" represents all statuses.
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
