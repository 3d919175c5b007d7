package upload

import (
	"context"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// BeginPart is BeginUpload for a request that starts or resumes a resumable upload. The
// file will have at least size bytes after the request, of which the record already
// counts recorded bytes.
func (s *Files) BeginPart(ctx context.Context, id app.UploadID, size, recorded int64) (generation int, quota *Reservation, err error) {
	return s.beginGeneration(ctx, id, size, Reservation{files: s, part: true, size: recorded, recorded: recorded})
}

// BeginPartial records that a resumable upload starts, replacing any earlier one. Its
// file must exist already.
func (s *Files) BeginPartial(ctx context.Context, id app.UploadID, p *app.Partial) error {
	return s.putPartial(ctx, id, p, func(*app.Upload) bool { return true })
}

// SavePartial records how much of a resumable upload is durable. It returns an error if
// that upload has been abandoned or replaced, or has expired.
func (s *Files) SavePartial(ctx context.Context, id app.UploadID, p *app.Partial) error {
	return s.putPartial(ctx, id, p, func(u *app.Upload) bool {
		return u.Partial != nil && u.Partial.Generation == p.Generation
	})
}

// putPartial records a partial upload if follows accepts the current record, and removes
// the one that it replaces.
func (s *Files) putPartial(ctx context.Context, id app.UploadID, p *app.Partial, follows func(*app.Upload) bool) error {
	saved := *p
	saved.ReceivedAt = unit.At(s.now())
	return s.changePartial(ctx, id, func(tx app.Tx, u *app.Upload) error {
		if u.Completed() {
			return uploadCompleted(u)
		}
		if !follows(u) {
			return fault.Errorf(fault.UploadOffset, "the received part of %q no longer exists: it was replaced, deleted or has expired; request the offset again", u.Filename)
		}
		err := s.admitBytes(tx, u, change{before: u.Partial.Reserved(), after: saved.Reserved()})
		u.Partial = &saved
		return err
	})
}

// DropPartial deletes the received data of a resumable upload and frees its space. It is
// idempotent.
func (s *Files) DropPartial(ctx context.Context, id app.UploadID) error {
	return s.changePartial(ctx, id, func(_ app.Tx, u *app.Upload) error {
		u.Partial = nil
		return nil
	})
}

// changePartial changes the record of an upload, and removes a partial file that the
// record no longer refers to.
func (s *Files) changePartial(ctx context.Context, id app.UploadID, fn func(app.Tx, *app.Upload) error) error {
	var before, after *app.Partial
	err := s.store.Update(ctx, func(tx app.Tx) error {
		u, err := tx.Upload(id)
		if err != nil {
			return err
		}
		before = u.Partial
		if err := fn(tx, u); err != nil {
			return err
		}
		after = u.Partial
		if before == nil && after == nil {
			return nil
		}
		return tx.PutUpload(u)
	})
	if err == nil && (after == nil || before != nil && after.Generation != before.Generation) {
		s.removePartial(id, before)
	}
	return err
}

// removePartial removes the file of a former partial upload; nil does nothing. Garbage
// collection removes it if this fails.
func (s *Files) removePartial(id app.UploadID, p *app.Partial) {
	if p != nil {
		_ = s.blobs.RemovePartial(id, p.Generation)
	}
}

// Renew creates new links for an upload that is not complete, for example if its links
// have expired. Received data is kept.
func (s *Files) Renew(ctx context.Context, by app.Caller, id, base string) (grant *Grant, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		u, err := uploadOf(tx, by, id)
		if err == nil && u.Completed() {
			err = uploadCompleted(u)
		}
		if err == nil {
			grant = s.grant(by, u, s.now(), base)
		}
		return err
	})
	return grant, err
}
