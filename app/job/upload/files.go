// Package upload receives and deletes users' files.
package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/quota"
)

// Files receives and deletes uploads.
type Files struct {
	store      app.Store
	blobs      app.Blobs
	options    Options
	ids        *sortid.Source
	generation atomic.Int64 // highest assigned to a PUT
	arrivals   arrivals
}

// Options configures Files.
type Options struct {
	Now     func() time.Time // wall clock; used only for times shown and stored
	LinkTTL time.Duration    // validity of the links for uploading a file and downloading it again

	Quota quota.Of // storage limits of users and organizations
}

// New returns the uploads whose records are in store and whose data is in blobs.
func New(store app.Store, blobs app.Blobs, o Options) *Files {
	return &Files{store: store, blobs: blobs, options: o, ids: sortid.NewSource(store.HighWaterMark()), arrivals: newArrivals()}
}

func (s *Files) now() time.Time { return s.options.Now() }

// quotas walks the holders with a storage limit that applies to an upload: its owner and
// the organization.
func (s *Files) quotas(u *app.Upload) iter.Seq2[quota.Holder, quota.Quota] {
	return func(yield func(quota.Holder, quota.Quota) bool) {
		for _, h := range quota.Holders(u.Organization, u.Email) {
			if q := s.options.Quota.For(h); q.Bytes > 0 && !yield(h, q) {
				return
			}
		}
	}
}

// Request is a request for an upload.
type Request struct {
	Folder, Filename string
	SHA256           string // hex; of content that might already be stored, "" if unknown
	Base             string // prefix of links
	Faults           []fault.Field
}

// Grant is an upload with its links: a new upload, or a completed one with the same
// content, for which only the download link is useful.
type Grant struct {
	Upload                 *app.Upload
	UploadURL, DownloadURL string
	ExpiresAt              unit.Time
}

// Create creates a pending upload, with links to upload and download it.
func (s *Files) Create(ctx context.Context, by app.Caller, r Request) (*Grant, error) {
	r.Folder, r.Filename = naming.Composed(cmp.Or(r.Folder, app.DefaultFolder)), naming.Composed(r.Filename)
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
	if known, err := s.knownUpload(ctx, u, r.SHA256); err != nil || known != nil {
		return s.grant(by, known, now, r.Base), err
	}
	err := s.store.Update(ctx, func(tx app.Tx) error {
		if err := s.admitUpload(tx, u); err != nil {
			return err
		}
		return tx.PutUpload(u)
	})
	if err != nil {
		return nil, err
	}
	return s.grant(by, u, now, r.Base), nil
}

// grant creates the links of an upload. It returns nil for a nil upload.
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

// knownUpload returns a completed upload by the same owner with this content: the newest
// one with the same folder and name, or otherwise the newest one. It returns nil if there
// is none.
func (s *Files) knownUpload(ctx context.Context, u *app.Upload, sha256 string) (known *app.Upload, err error) {
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

// admitUpload rejects an upload if a quota is used up, before any data is sent.
func (s *Files) admitUpload(tx app.Tx, u *app.Upload) error {
	for h, q := range s.quotas(u) {
		used, err := tx.Stored(h.Organization, h.User)
		if err == nil {
			err = q.RefuseFull(h, used.Bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contentTypes maps extensions to media types. The machine's own table is not used, so
// that all servers respond identically.
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

// Upload returns the record of an upload. The caller must have verified a link to it.
func (s *Files) Upload(ctx context.Context, id app.UploadID) (u *app.Upload, err error) {
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		u, err = tx.Upload(id)
		return err
	})
	return u, err
}

// BeginUpload returns a new generation for a PUT and reserves quota for length bytes, -1
// if unknown. It must be called before the body is read. The caller releases the
// reservation when the PUT has ended. FinishUpload decides whether the data fits.
func (s *Files) BeginUpload(ctx context.Context, id app.UploadID, length int64) (generation int, quota *Reservation, err error) {
	return s.beginGeneration(ctx, id, length, Reservation{files: s})
}

func (s *Files) beginGeneration(ctx context.Context, id app.UploadID, length int64, r Reservation) (generation int, quota *Reservation, err error) {
	u, err := s.Upload(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	if u.Completed() {
		return 0, nil, uploadCompleted(u)
	}
	r.upload = u
	if err := r.Grow(ctx, length); err != nil {
		return 0, nil, err
	}
	for {
		last := s.generation.Load()
		next := max(last+1, s.now().UnixMilli(), int64(u.Generation)+1)
		if s.generation.CompareAndSwap(last, next) {
			return int(next), &r, nil
		}
	}
}

func uploadCompleted(u *app.Upload) error {
	return fault.Errorf(fault.UploadCompleted, "the upload of %q is complete and can't change; request a new upload URL", u.Filename)
}

// arrivals counts the bytes reserved by uploads in progress, by quota holder, so that two
// concurrent uploads that don't both fit are not both received to the end.
type arrivals struct {
	mu     sync.Mutex
	coming map[quota.Holder]int64
	// replacing maps each upload to the PUT that is credited with its stored bytes. Other
	// PUTs to the same link count in full, since otherwise each of them could use the
	// space again.
	replacing map[app.UploadID]*Reservation
}

func newArrivals() arrivals {
	return arrivals{coming: map[quota.Holder]int64{}, replacing: map[app.UploadID]*Reservation{}}
}

func (a *arrivals) addBytes(u *app.Upload, bytes int64) {
	for _, h := range quota.Holders(u.Organization, u.Email) {
		if a.coming[h] += bytes; a.coming[h] == 0 {
			delete(a.coming, h)
		}
	}
}

// Reservation is the part of a quota reserved for a request while it receives an upload.
type Reservation struct {
	files    *Files
	upload   *app.Upload
	part     bool  // whether it is for a part of a resumable upload
	size     int64 // total bytes reserved or recorded
	recorded int64 // part of size already counted by the record
}

// Grow raises the reservation to size bytes in total, or returns an error. A nil
// reservation is unlimited.
func (r *Reservation) Grow(ctx context.Context, size int64) error {
	if r == nil || size <= r.size || !r.files.bounded(r.upload) {
		return nil
	}
	a := &r.files.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	err := r.files.store.View(ctx, func(tx app.Tx) error {
		u, err := tx.Upload(r.upload.ID)
		if err != nil {
			return err
		}
		return r.files.admitBytes(tx, u, change{r.replaced(u), size, func(h quota.Holder) int64 { return a.coming[h] - r.coming() }})
	})
	if err == nil {
		r.setSize(size, r.recorded)
		if !r.part && a.replacing[r.upload.ID] == nil {
			a.replacing[r.upload.ID] = r
		}
	}
	return err
}

// replaced returns how many stored bytes of an upload the received ones replace or
// include.
func (r *Reservation) replaced(u *app.Upload) int64 {
	first := r.files.arrivals.replacing[u.ID]
	switch {
	case r.part:
		return u.Partial.Reserved()
	case first == nil || first == r:
		return u.Usage().Bytes
	}
	return 0
}

// coming returns the reserved bytes not counted by the record.
func (r *Reservation) coming() int64 { return max(0, r.size-r.recorded) }

func (r *Reservation) setSize(size, recorded int64) {
	before := r.coming()
	r.size, r.recorded = size, recorded
	r.files.arrivals.addBytes(r.upload, r.coming()-before)
}

// Recorded sets how many bytes the record counts now. They are no longer reserved.
func (r *Reservation) Recorded(bytes int64) {
	if r == nil {
		return
	}
	r.files.arrivals.mu.Lock()
	defer r.files.arrivals.mu.Unlock()
	r.setSize(r.size, bytes)
}

// Release ends the reservation. It is idempotent.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	a := &r.files.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	r.setSize(0, 0)
	if a.replacing[r.upload.ID] == r {
		delete(a.replacing, r.upload.ID)
	}
}

// FinishUpload makes the data of a PUT the upload's current generation, unless the upload
// has been completed or the quota does not allow it. It drops data received in parts. It
// returns the stale generation to remove, or 0 if there is none.
func (s *Files) FinishUpload(ctx context.Context, id app.UploadID, f app.StoredFile) (stale int, err error) {
	var partial *app.Partial
	err = s.store.Update(ctx, func(tx app.Tx) error {
		u, err := tx.Upload(id)
		if err != nil {
			return err
		}
		if u.Completed() {
			return uploadCompleted(u)
		}
		if err := s.admitBytes(tx, u, change{before: u.Usage().Bytes, after: f.Size}); err != nil {
			return err
		}
		stale, partial = u.Generation, u.Partial
		u.Partial = nil
		u.Generation, u.Size, u.SHA256, u.CRC32 = f.Generation, f.Size, f.SHA256, f.CRC32
		return tx.PutUpload(u)
	})
	if err == nil {
		s.removePartial(id, partial)
	}
	return stale, err
}

// change is a change of the number of bytes that an upload counts. coming returns the
// bytes of a quota reserved by other uploads.
type change struct {
	before, after int64
	coming        func(quota.Holder) int64 // nil means none
}

// bounded reports whether a quota limits an upload.
func (s *Files) bounded(u *app.Upload) bool {
	for range s.quotas(u) {
		return true
	}
	return false
}

// admitBytes rejects a change that exceeds a quota.
func (s *Files) admitBytes(tx app.Tx, u *app.Upload, c change) error {
	if c.after <= c.before {
		return nil // a smaller file is accepted even above the quota
	}
	for h, q := range s.quotas(u) {
		used, err := tx.Stored(h.Organization, h.User)
		if err != nil {
			return err
		}
		coming := int64(0)
		if c.coming != nil {
			coming = c.coming(h)
		}
		if used.Bytes-c.before+coming+c.after > q.Bytes {
			return fault.Errorf(fault.QuotaExceeded, "the storage limit of %s is %s (%s used%s), so %q with %s does not fit; delete files or jobs that are no longer needed, or ask an administrator",
				h, unit.Bytes(q.Bytes), unit.Bytes(used.Bytes), andComing(coming), u.Filename, unit.Bytes(c.after))
		}
	}
	return nil
}

func andComing(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return ", " + unit.Bytes(bytes).String() + " being uploaded"
}

// Complete confirms the received data, which never changes after that. It is idempotent.
// If size is given, it must match.
func (s *Files) Complete(ctx context.Context, by app.Caller, id string, size *int64) (u *app.Upload, err error) {
	var partial *app.Partial
	err = s.store.Update(ctx, func(tx app.Tx) (err error) {
		if u, err = uploadOf(tx, by, id); err != nil {
			return err
		}
		partial = u.Partial
		switch {
		case u.Generation == 0 && partial != nil:
			return fault.Errorf(fault.UploadNotReceived, "only the first %s of %q were received; send the rest to its uploadUrl first", unit.Bytes(partial.Offset), u.Filename)
		case u.Generation == 0:
			return fault.Errorf(fault.UploadNotReceived, "no data of %q has been received yet; PUT the file to its uploadUrl first", u.Filename)
		case size != nil && *size != u.Size:
			return fault.List(fault.Field{
				Loc: []any{"body", "size"}, Type: "value",
				Msg: fmt.Sprintf("%d bytes were received, not %d; PUT the file again or omit size", u.Size, *size),
			})
		case u.Completed():
			return nil
		}
		u.CompletedAt, u.Partial = unit.At(s.now()), nil
		return tx.PutUpload(u)
	})
	if err == nil {
		s.removePartial(u.ID, partial)
	}
	return u, err
}

// uploadOf returns an upload that the caller is allowed to change.
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
			return app.ErrInUse(tx, fmt.Sprintf("the file %q", u.Filename), reader)
		case !errors.Is(err, fault.NotFound):
			return err
		}
		return tx.DeleteUpload(u.ID)
	})
	if err != nil {
		return err
	}
	s.removePartial(u.ID, u.Partial)
	if u.Generation == 0 {
		return nil
	}
	return s.blobs.RemoveUpload(u.ID, u.Generation)
}
