package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"molrun/app/fault"
)

// Files receives, lists and deletes uploads.
type Files struct {
	*core
	generation atomic.Int64 // highest given to a PUT
	arrivals   arrivals
}

// Delete deletes an upload and frees its disk space at once.
func (s *Files) Delete(ctx context.Context, by Caller, id string) error {
	var u *Upload
	err := s.store.Update(ctx, func(tx Tx) (err error) {
		if u, err = uploadOf(tx, by, id); err != nil {
			return err
		}
		reader, err := tx.NeededBy(string(u.ID))
		switch {
		case err == nil:
			return inUse(tx, fmt.Sprintf("the file %q", u.Filename), reader)
		case !errors.Is(err, fault.NotFound):
			return err
		}
		return tx.DeleteUpload(u.ID)
	})
	if err != nil || u.Generation == 0 {
		return err
	}
	return s.blobs.RemoveUpload(u.ID, u.Generation)
}

// ArchiveFolders returns the folders of a job's archive; partial selects only
// the completed rows of a batch.
func (s *Files) ArchiveFolders(ctx context.Context, id JobID, partial bool) (folders []Folder, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		j, err := tx.Job(id)
		if err != nil {
			return err
		}
		if j.Status != Completed && !partial {
			return fault.Errorf(fault.NotFound, "the result is no longer there; ask for a new link")
		}
		folders, err = archiveFolders(tx, j, partial)
		return err
	})
	return folders, err
}
