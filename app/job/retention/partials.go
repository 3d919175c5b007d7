package retention

import (
	"context"
	"errors"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
)

// dropPartials deletes the received data of resumable uploads that were not resumed in
// time. The uploads themselves are kept and can be restarted.
func (k *Keeper) dropPartials(ctx context.Context, now time.Time, gone func(*app.Expired)) error {
	if k.options.Partial <= 0 {
		return nil
	}
	before := now.Add(-k.options.Partial)
	for ctx.Err() == nil {
		var stale []app.UploadID
		err := k.store.View(ctx, func(tx app.Tx) (err error) {
			stale, err = tx.StalePartials(before, retainPage)
			return err
		})
		if err != nil || len(stale) == 0 {
			return err
		}
		taken := 0
		for _, id := range stale {
			u, err := k.takePartial(ctx, id, func(p *app.Partial) bool { return p.ReceivedAt.Before(before) })
			if err == nil && u != nil {
				taken++
				gone(&app.Expired{
					Organization: u.Organization, Email: u.Email, Uploads: []string{u.Folder + "/" + u.Filename + " (partial)"}, Bytes: u.Partial.Reserved(),
				})
				err = k.blobs.RemovePartial(id, u.Partial.Generation)
			}
			if err != nil { // the record might remain; the next run continues
				return err
			}
		}
		if taken == 0 { // all of them have been resumed
			return nil
		}
	}
	return ctx.Err()
}

// takePartial clears the record of a partial upload and returns the upload as it was, or
// nil if the partial is no longer due.
func (k *Keeper) takePartial(ctx context.Context, id app.UploadID, due func(*app.Partial) bool) (taken *app.Upload, err error) {
	err = k.store.Update(ctx, func(tx app.Tx) error {
		taken = nil
		u, err := tx.Upload(id)
		if errors.Is(err, fault.NotFound) || err == nil && (u.Partial == nil || !due(u.Partial)) {
			return nil
		}
		if err != nil {
			return err
		}
		before := *u
		u.Partial = nil
		taken = &before
		return tx.PutUpload(u)
	})
	return taken, err
}
