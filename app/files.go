package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/unit"
)

// Files receives, lists and deletes uploads.
type Files struct {
	*core
	generation atomic.Int64 // highest given to a PUT
	arrivals   arrivals
}

// UploadGrant is a new upload with its links.
type UploadGrant struct {
	Upload                 *Upload
	UploadURL, DownloadURL string
	ExpiresAt              unit.Time
}

// UploadRequest asks for an upload.
type UploadRequest struct {
	Folder, Filename string
	Base             string // what links begin with
	Faults           []fault.Field
}

// Create makes a pending upload, with links to send and to fetch its bytes.
func (s *Files) Create(ctx context.Context, by Caller, r UploadRequest) (*UploadGrant, error) {
	if r.Folder == "" {
		r.Folder = DefaultFolder
	}
	faults := r.Faults
	if msg := naming.CheckFilename(r.Filename); msg != "" {
		faults = append(faults, fault.Field{Loc: []any{"path", "filename"}, Msg: msg, Type: "value"})
	}
	if msg := naming.CheckFolder(r.Folder); msg != "" {
		faults = append(faults, fault.Field{Loc: []any{"query", "folder"}, Msg: msg, Type: "value"})
	}
	if err := fault.List(faults...); err != nil {
		return nil, err
	}
	now := s.now()
	u := &Upload{
		ID:           UploadID(s.ids.next(now)),
		Organization: by.Organization,
		Email:        by.Email,
		Folder:       r.Folder,
		Filename:     r.Filename,
		ContentType:  contentType(r.Filename),
		CreatedAt:    unit.At(now),
	}
	err := s.store.Update(ctx, func(tx Tx) error {
		if err := s.admitUpload(tx, u.Organization); err != nil {
			return err
		}
		return tx.PutUpload(u)
	})
	if err != nil {
		return nil, err
	}
	link := Link{
		Kind: UploadPut, ID: string(u.ID), Filename: u.Filename, ContentType: u.ContentType,
		Expires: now.Add(s.options.UploadTTL), Holder: by.KeyID,
	}
	grant := &UploadGrant{Upload: u, UploadURL: r.Base + s.blobs.Link(link), ExpiresAt: unit.At(link.Expires)}
	link.Kind = UploadGet
	grant.DownloadURL = r.Base + s.blobs.Link(link)
	return grant, nil
}

// contentTypes maps extensions to media types. The machine's own table is not
// used, so that every server answers alike.
var contentTypes = map[string]string{
	".cif": "chemical/x-mmcif", ".csv": "text/csv", ".faa": "text/x-fasta", ".fa": "text/x-fasta",
	".fasta": "text/x-fasta", ".gz": "application/gzip", ".json": "application/json", ".pdb": "chemical/x-pdb",
	".tar": "application/x-tar", ".toml": "application/toml", ".txt": "text/plain", ".yaml": "application/yaml",
	".yml": "application/yaml", ".zip": "application/zip",
}

func contentType(filename string) string {
	if t, ok := contentTypes[naming.Extension(filename)]; ok {
		return t
	}
	return "application/octet-stream"
}

// Upload returns the record of an upload. The caller has verified a link to it.
func (s *Files) Upload(ctx context.Context, id UploadID) (u *Upload, err error) {
	err = s.store.View(ctx, func(tx Tx) (err error) {
		u, err = tx.Upload(id)
		return err
	})
	return u, err
}

// BeginUpload is called before the body of a PUT is read. It returns a
// generation that no other PUT has.
func (s *Files) BeginUpload(ctx context.Context, id UploadID) (generation int, err error) {
	u, err := s.Upload(ctx, id)
	if err != nil {
		return 0, err
	}
	if u.Completed() {
		return 0, uploadCompleted(u)
	}
	for {
		last := s.generation.Load()
		next := max(last+1, s.now().UnixMilli(), int64(u.Generation)+1)
		if s.generation.CompareAndSwap(last, next) {
			return int(next), nil
		}
	}
}

func uploadCompleted(u *Upload) error {
	return fault.Errorf(fault.UploadCompleted, "the upload of %q is complete and can't change; ask for a new upload URL", u.Filename)
}

// ReserveUpload reserves quota for a PUT, after BeginUpload; length is the
// length of the body if that is known. The caller releases the reservation when
// the PUT has ended. FinishUpload decides whether the bytes fit.
func (s *Files) ReserveUpload(ctx context.Context, id UploadID, length int64) (*Reservation, error) {
	u, err := s.Upload(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &Reservation{core: s.core, arrivals: &s.arrivals, upload: u}
	return r, r.Grow(ctx, max(0, length))
}

// FinishUpload makes the bytes of a PUT the upload's current generation, unless
// the upload was completed meanwhile or the quota does not allow it. It returns
// the stale generation that may be removed, 0 for none.
func (s *Files) FinishUpload(ctx context.Context, id UploadID, f StoredFile) (stale int, err error) {
	err = s.store.Update(ctx, func(tx Tx) error {
		u, err := tx.Upload(id)
		if err != nil {
			return err
		}
		if u.Completed() {
			return uploadCompleted(u)
		}
		if err := s.admitBytes(tx, u, f.Size, 0); err != nil {
			return err
		}
		stale = u.Generation
		u.Generation, u.Size, u.SHA256 = f.Generation, f.Size, f.SHA256
		return tx.PutUpload(u)
	})
	return stale, err
}

// uploadOf returns an upload that the caller may change.
func uploadOf(tx Tx, by Caller, id string) (*Upload, error) {
	_, bad := ParseID(id)
	var u *Upload
	err := error(fault.NotFound)
	if bad == nil {
		u, err = tx.Upload(UploadID(id))
	}
	switch {
	case errors.Is(err, fault.NotFound) || err == nil && u.Organization != by.Organization:
		return nil, fault.Errorf(fault.NotFound, "there is no file %q in your organization; GET /files lists yours", id)
	case err != nil:
		return nil, err
	case !by.May(u.Email):
		return nil, fault.Errorf(fault.Forbidden, "the file %q belongs to %s; ask them or an admin of the organization", u.Filename, u.Email)
	}
	return u, nil
}

// Complete confirms the bytes received; they never change afterwards. It is
// idempotent. A given size must match.
func (s *Files) Complete(ctx context.Context, by Caller, id string, size *int64) (u *Upload, err error) {
	err = s.store.Update(ctx, func(tx Tx) (err error) {
		if u, err = uploadOf(tx, by, id); err != nil {
			return err
		}
		switch {
		case u.Generation == 0:
			return fault.Errorf(fault.UploadNotReceived, "nothing was received of %q yet; PUT the file to its uploadUrl first", u.Filename)
		case size != nil && *size != u.Size:
			return fault.List(fault.Field{
				Loc: []any{"body", "size"}, Type: "value",
				Msg: fmt.Sprintf("%d bytes were received, not %d; PUT the file again or leave size out", u.Size, *size),
			})
		case u.Completed():
			return nil
		}
		u.CompletedAt = unit.At(s.now())
		return tx.PutUpload(u)
	})
	return u, err
}

// FileQuery selects and pages uploads; Folder "" is all.
type FileQuery struct {
	Folder            string
	WholeOrganization bool // else the caller's own
	Limit             int
	StartKey          string
}

// FileListing is a page of uploads and the cursor of the next page, "" on the
// last.
type FileListing struct {
	Uploads  []*Upload
	StartKey string
}

// List returns uploads, newest first.
func (s *Files) List(ctx context.Context, by Caller, q FileQuery) (*FileListing, error) {
	f := UploadFilter{Organization: by.Organization, Email: by.Email, Folder: q.Folder}
	if q.WholeOrganization {
		f.Email = ""
	}
	listing := []string{"files", f.Organization, f.Email, f.Folder}
	before, err := s.cursors.read(q.StartKey, listing...)
	if err != nil {
		return nil, err
	}
	var page UploadPage
	err = s.store.View(ctx, func(tx Tx) (err error) {
		page, err = tx.Uploads(f, UploadID(before), q.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &FileListing{Uploads: page.Uploads}
	if page.More {
		out.StartKey = s.cursors.make(string(page.Uploads[len(page.Uploads)-1].ID), listing...)
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
