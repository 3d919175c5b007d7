// Package snapshot gives commands a consistent read-only view of a data directory,
// whether or not a service runs on it. A backup and a check need records and files that
// belong together.
//
// A running service first pauses the removal of files, then writes a snapshot of its
// database, and then responds. For the duration of the request, every file named in the
// snapshot remains unchanged:
//
//   - It existed when the snapshot was made, since a file is stored before its
//     record.
//   - It is removed only after its record, thus after the snapshot, thus after
//     removals were paused; so its removal waits.
//   - It does not change, since stored files never do.
//
// Removals resume when the request ends for any reason.
package snapshot

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"molrun/app/base/fault"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/blobs"
	"molrun/storage"
)

// NameLayout is the format of a snapshot's time, in UTC, in file names.
const NameLayout = "20060102T150405Z"

// Snapshot holds the records and files of a data directory at a point in time.
type Snapshot struct {
	Records *storage.ReadOnly
	Files   *blobs.Tree
	Live    bool // a service is running on the directory
	Taken   time.Time
}

// WithSnapshot runs fn on a snapshot of the data directory: one kept by the running
// service, or otherwise the directory itself, on which no service can start until fn
// returns. Concurrent commands run one after the other. A service that exits before
// responding counts as not running.
func WithSnapshot(ctx context.Context, c config.Config, fn func(context.Context, *Snapshot) error) error {
	for deadline := time.Now().Add(host.LockTimeout); ; {
		var err error
		if host.Running(ctx, c.Data) {
			err = useLive(ctx, c.Data, fn)
			if !errors.Is(err, errUnanswered) {
				return err
			}
		} else {
			var records *storage.ReadOnly
			records, err = storage.OpenReadOnly(filepath.Join(c.Data, host.Database))
			if err == nil {
				return withRecords(ctx, c.Data, records, false, fn)
			}
			if !errors.Is(err, fault.Unavailable) {
				return err
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// withRecords closes the records when fn is done.
func withRecords(ctx context.Context, data string, records *storage.ReadOnly, live bool, fn func(context.Context, *Snapshot) error) (err error) {
	defer func() { err = errors.Join(err, records.Close()) }()
	files, err := blobs.OpenTree(data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	return fn(ctx, &Snapshot{Records: records, Files: files, Live: live, Taken: time.Now()})
}
