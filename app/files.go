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

// FileQuery selects and pages uploads; Folder "" is all.
type FileQuery struct {
	Folder            string
	SHA256            string // hex
	WholeOrganization bool   // else the caller's own
	Limit             int
	StartKey          string
	Faults            []fault.Field // found while decoding
}

// FileListing is a page of uploads and the cursor of the next page, "" on the
// last.
type FileListing struct {
	Uploads  []*Upload
	StartKey string
}

// List returns uploads, newest first.
func (s *Files) List(ctx context.Context, by Caller, q FileQuery) (*FileListing, error) {
	f := UploadFilter{Organization: by.Organization, Email: by.Email, Folder: q.Folder, SHA256: q.SHA256}
	if q.WholeOrganization {
		f.Email = ""
	}
	listing := []string{"files", f.Organization, f.Email, f.Folder}
	if f.SHA256 != "" {
		listing = append(listing, f.SHA256)
	}
	after, err := s.readCursor(q.StartKey, q.Faults, listing...)
	if err != nil {
		return nil, err
	}
	var page UploadPage
	err = s.store.View(ctx, func(tx Tx) (err error) {
		page, err = tx.Uploads(f, after, q.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &FileListing{Uploads: page.Uploads}
	if page.Next != "" {
		out.StartKey = s.cursors.Make(string(page.Next), listing...)
	}
	return out, nil
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
