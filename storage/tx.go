package storage

import (
	"encoding/json"
	"errors"
	"fmt"

	"molrun/app"
	"molrun/app/fault"
	"molrun/storage/kv"
)

// Buckets of records. Those that follow from them are named beside their
// entries.
const (
	bucketJobs        = "jobs"
	bucketJobsPrivate = "jobs.private"
	bucketUploads     = "uploads"
	bucketKeys        = "keys"
	bucketDefinitions = "definitions"
)

// tx implements app.Tx. What it returns is copied out of the transaction.
type tx struct{ *kv.Tx }

var _ app.Tx = tx{}

// readJob reads both parts of a job: as clients see it, and what they do not.
func readJob(t *kv.Tx, id app.IDBytes) (*app.Job, error) {
	shown := t.Bucket(bucketJobs).Get(id[:])
	if shown == nil {
		return nil, noJob(id.String())
	}
	var j app.Job
	if err := json.Unmarshal(shown, &j); err != nil {
		return nil, fmt.Errorf("read job %s: %w", id, err)
	}
	if err := j.DecodePrivate(t.Bucket(bucketJobsPrivate).Get(id[:])); err != nil {
		return nil, fmt.Errorf("read the private part of job %s: %w", id, err)
	}
	return &j, nil
}

func noJob(id string) error { return fault.Errorf(fault.NotFound, "there is no job %s", id) }

func readUpload(t *kv.Tx, id app.IDBytes) (*app.Upload, error) {
	value := t.Bucket(bucketUploads).Get(id[:])
	if value == nil {
		return nil, noUpload(id.String())
	}
	var u app.Upload
	if err := json.Unmarshal(value, &u); err != nil {
		return nil, fmt.Errorf("read upload %s: %w", id, err)
	}
	return &u, nil
}

func noUpload(id string) error { return fault.Errorf(fault.NotFound, "there is no file %s", id) }

// present turns NotFound into nil.
func present[T any](v *T, err error) (*T, error) {
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	return v, err
}

// idOf parses an ID that was checked when its record was put.
func idOf[T ~string](text T) app.IDBytes {
	id, _ := app.ParseID(string(text))
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
