// Package upload receives the files of users, and deletes them.
package upload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/sortid"
	"molrun/app/unit"
)

// Files receives and deletes uploads.
type Files struct {
	store      app.Store
	blobs      app.Blobs
	options    Options
	ids        *sortid.Source
	generation atomic.Int64 // highest given to a PUT
	arrivals   arrivals
}

// Options are what uploads need besides their parts.
type Options struct {
	Now     func() time.Time // wall clock; only shown and stored
	LinkTTL time.Duration    // of upload links and an upload's download link

	// Quota tells what an organization may use; nil is no bound.
	Quota func(organization string) app.Quota
}

// New returns the uploads of a store, whose bytes blobs keep.
func New(store app.Store, blobs app.Blobs, o Options) *Files {
	return &Files{store: store, blobs: blobs, options: o, ids: sortid.NewSource(store.Floor())}
}

func (s *Files) now() time.Time { return s.options.Now() }

// quota returns how many bytes an organization may store, 0 for any number.
func (s *Files) quota(organization string) int64 {
	if s.options.Quota == nil {
		return 0
	}
	return s.options.Quota(organization).Bytes
}

// Request asks for an upload.
type Request struct {
	Folder, Filename string
	SHA256           string // hex; of bytes that need not be sent again, "" if not known
	Base             string // what links begin with
	Faults           []fault.Field
}

// Grant is an upload with its links: a new one, or a completed one that has
// the bytes already, of which only the link to fetch them is of use.
type Grant struct {
	Upload                 *app.Upload
	UploadURL, DownloadURL string
	ExpiresAt              unit.Time
}

// Create makes a pending upload, with links to send and to fetch its bytes.
func (s *Files) Create(ctx context.Context, by app.Caller, r Request) (*Grant, error) {
	if r.Folder == "" {
		r.Folder = app.DefaultFolder
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
	u := &app.Upload{
		ID:           app.UploadID(s.ids.Next(now)),
		Organization: by.Organization,
		Email:        by.Email,
		Folder:       r.Folder,
		Filename:     r.Filename,
		ContentType:  contentType(r.Filename),
		CreatedAt:    unit.At(now),
	}
	if known, err := s.known(ctx, u, r.SHA256); err != nil || known != nil {
		return s.grant(by, known, now, r.Base), err
	}
	err := s.store.Update(ctx, func(tx app.Tx) error {
		if err := s.admitUpload(tx, u.Organization); err != nil {
			return err
		}
		return tx.PutUpload(u)
	})
	if err != nil {
		return nil, err
	}
	return s.grant(by, u, now, r.Base), nil
}

// grant makes the links of an upload, nil of none.
func (s *Files) grant(by app.Caller, u *app.Upload, now time.Time, base string) *Grant {
	if u == nil {
		return nil
	}
	link := app.Link{
		Kind: app.UploadPut, ID: string(u.ID), Filename: u.Filename, ContentType: u.ContentType,
		Expires: now.Add(s.options.LinkTTL), Holder: by.KeyID, Issued: by.At,
	}
	grant := &Grant{Upload: u, UploadURL: base + s.blobs.Link(link), ExpiresAt: unit.At(link.Expires)}
	link.Kind = app.UploadGet
	grant.DownloadURL = base + s.blobs.Link(link)
	return grant
}

// known returns a completed upload of the same owner that has these bytes, nil if
// there is none: the newest one of the same folder and name, or else the newest.
func (s *Files) known(ctx context.Context, u *app.Upload, sha256 string) (known *app.Upload, err error) {
	if sha256 == "" {
		return nil, nil
	}
	err = s.store.View(ctx, func(tx app.Tx) error {
		same, err := tx.UploadNamed(u.Organization, u.Email, u.Folder, u.Filename)
		if err == nil && same.SHA256 == sha256 {
			known = same
			return nil
		}
		if err != nil && !errors.Is(err, fault.NotFound) {
			return err
		}
		page, err := tx.Uploads(app.UploadFilter{Organization: u.Organization, Email: u.Email, SHA256: sha256}, "", 1)
		if err == nil && len(page.Uploads) > 0 {
			known = page.Uploads[0]
		}
		return err
	})
	return known, err
}

// admitUpload refuses an upload if the quota is exhausted, before anything is
// sent.
func (s *Files) admitUpload(tx app.Tx, organization string) error {
	quota := s.quota(organization)
	if quota == 0 {
		return nil
	}
	used, err := tx.Stored(organization)
	if err != nil {
		return err
	}
	return app.RefuseFull(organization, quota, used.Bytes)
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
func (s *Files) Upload(ctx context.Context, id app.UploadID) (u *app.Upload, err error) {
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		u, err = tx.Upload(id)
		return err
	})
	return u, err
}

// BeginUpload is called before the body of a PUT is read. It returns a generation
// that no other PUT has, and reserves quota for length bytes, -1 if that is
// unknown. The caller releases the reservation when the PUT has ended. FinishUpload
// decides whether the bytes fit.
func (s *Files) BeginUpload(ctx context.Context, id app.UploadID, length int64) (generation int, quota *Reservation, err error) {
	u, err := s.Upload(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	if u.Completed() {
		return 0, nil, uploadCompleted(u)
	}
	quota = &Reservation{files: s, upload: u}
	if err := quota.Grow(ctx, max(0, length)); err != nil {
		return 0, nil, err
	}
	for {
		last := s.generation.Load()
		next := max(last+1, s.now().UnixMilli(), int64(u.Generation)+1)
		if s.generation.CompareAndSwap(last, next) {
			return int(next), quota, nil
		}
	}
}

func uploadCompleted(u *app.Upload) error {
	return fault.Errorf(fault.UploadCompleted, "the upload of %q is complete and can't change; ask for a new upload URL", u.Filename)
}

// arrivals counts the bytes reserved by uploads in progress, by organization,
// so that two concurrent uploads that don't both fit are not both received to
// the end.
type arrivals struct {
	mu     sync.Mutex
	coming map[string]int64
}

func (a *arrivals) add(organization string, bytes int64) {
	if a.coming == nil {
		a.coming = map[string]int64{}
	}
	if a.coming[organization] += bytes; a.coming[organization] == 0 {
		delete(a.coming, organization)
	}
}

// Reservation is the part of a quota that a PUT holds while it lasts.
type Reservation struct {
	files  *Files
	upload *app.Upload
	size   int64
}

// Grow raises the reservation to size bytes in all, or refuses. A nil
// reservation is unlimited.
func (r *Reservation) Grow(ctx context.Context, size int64) error {
	if r == nil || size <= r.size || r.files.quota(r.upload.Organization) == 0 {
		return nil
	}
	a := &r.files.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	err := r.files.store.View(ctx, func(tx app.Tx) error {
		return r.files.admitBytes(tx, r.upload, size, a.coming[r.upload.Organization]-r.size)
	})
	if err == nil {
		a.add(r.upload.Organization, size-r.size)
		r.size = size
	}
	return err
}

// Release ends the reservation. It is idempotent.
func (r *Reservation) Release() {
	if r == nil || r.size == 0 {
		return
	}
	a := &r.files.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(r.upload.Organization, -r.size)
	r.size = 0
}

// FinishUpload makes the bytes of a PUT the upload's current generation, unless
// the upload was completed meanwhile or the quota does not allow it. It returns
// the stale generation that may be removed, 0 for none.
func (s *Files) FinishUpload(ctx context.Context, id app.UploadID, f app.StoredFile) (stale int, err error) {
	err = s.store.Update(ctx, func(tx app.Tx) error {
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

// admitBytes refuses size bytes that replace the current bytes of an upload, if
// they exceed the quota. coming is what other uploads have reserved.
func (s *Files) admitBytes(tx app.Tx, u *app.Upload, size, coming int64) error {
	quota := s.quota(u.Organization)
	if quota == 0 {
		return nil
	}
	used, err := tx.Stored(u.Organization)
	if err != nil {
		return err
	}
	// A smaller file is welcome even beyond the quota.
	if size > u.Size && used.Bytes-u.Size+coming+size > quota {
		return fault.Errorf(fault.QuotaExceeded, "organization %q may store %s and stores %s%s, so that %q of %s does not fit; delete files or jobs that are no longer needed, or ask an administrator",
			u.Organization, unit.Bytes(quota), unit.Bytes(used.Bytes), andComing(coming), u.Filename, unit.Bytes(size))
	}
	return nil
}

func andComing(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return ", and " + unit.Bytes(bytes).String() + " are being uploaded"
}

// Complete confirms the bytes received; they never change afterwards. It is
// idempotent. A given size must match.
func (s *Files) Complete(ctx context.Context, by app.Caller, id string, size *int64) (u *app.Upload, err error) {
	err = s.store.Update(ctx, func(tx app.Tx) (err error) {
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

// uploadOf returns an upload that the caller may change.
func uploadOf(tx app.Tx, by app.Caller, id string) (*app.Upload, error) {
	_, bad := sortid.Parse(id)
	var u *app.Upload
	err := error(fault.NotFound)
	if bad == nil {
		u, err = tx.Upload(app.UploadID(id))
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

// Delete deletes an upload and frees its disk space at once.
func (s *Files) Delete(ctx context.Context, by app.Caller, id string) error {
	var u *app.Upload
	err := s.store.Update(ctx, func(tx app.Tx) (err error) {
		if u, err = uploadOf(tx, by, id); err != nil {
			return err
		}
		reader, err := tx.NeededBy(string(u.ID))
		switch {
		case err == nil:
			return app.InUse(tx, fmt.Sprintf("the file %q", u.Filename), reader)
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
