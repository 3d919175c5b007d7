package upload

import (
	"context"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// BeginPart is BeginUpload for a request that begins a file in parts or adds to it. The
// file will have size bytes at least when it ends, of which the record counts some
// already.
func (s *Files) BeginPart(ctx context.Context, id app.UploadID, size, recorded int64) (generation int, quota *Reservation, err error) {
	return s.beginGeneration(ctx, id, size, Reservation{files: s, part: true, size: recorded, recorded: recorded})
}

// BeginPartial records that a file begins to arrive in parts, in place of what has
// arrived of another. Its file is there already.
func (s *Files) BeginPartial(ctx context.Context, id app.UploadID, p *app.Partial) error {
	return s.putPartial(ctx, id, p, func(*app.Upload) bool { return true })
}

// SavePartial records what of such a file is durable. It refuses if the file was
// abandoned, replaced or expired in the meantime.
func (s *Files) SavePartial(ctx context.Context, id app.UploadID, p *app.Partial) error {
	return s.putPartial(ctx, id, p, func(u *app.Upload) bool {
		return u.Partial != nil && u.Partial.Generation == p.Generation
	})
}

// putPartial records a partial file if it follows what is recorded, and removes the
// one that it replaces.
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

// DropPartial forgets what has arrived of a file in parts, and frees its space. It is
// idempotent.
func (s *Files) DropPartial(ctx context.Context, id app.UploadID) error {
	return s.changePartial(ctx, id, func(_ app.Tx, u *app.Upload) error {
		u.Partial = nil
		return nil
	})
}

// changePartial changes the record of an upload, and removes a partial file that it
// no longer names.
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

// removePartial removes the file of a partial that a record named, nil of none. What
// can't be removed is left to the garbage collection.
func (s *Files) removePartial(id app.UploadID, p *app.Partial) {
	if p != nil {
		_ = s.blobs.RemovePartial(id, p.Generation)
	}
}

// Renew gives new links of an upload that is not complete, such as one whose links
// have expired. What has arrived of it stays.
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
