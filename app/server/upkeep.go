package server

import (
	"context"
	"errors"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
)

const (
	cleanUpInterval   = 24 * time.Hour
	retentionInterval = time.Hour
	placeInterval     = time.Second
)

// repeat calls fn now and after each interval, independently of the wall clock, until ctx
// is done.
func repeat(ctx context.Context, interval time.Duration, fn func(context.Context)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		fn(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// cleanUp removes files that no record names.
func (s *service) cleanUp(ctx context.Context) {
	upload := func(id app.UploadID, generation int) bool {
		u, err := s.uploads.Upload(ctx, id)
		return err == nil && u.Has(generation) || err != nil && !errors.Is(err, fault.NotFound)
	}
	job := func(id app.JobID) bool {
		err := s.store.View(ctx, func(tx app.Tx) error {
			_, err := tx.Job(id)
			return err
		})
		return !errors.Is(err, fault.NotFound)
	}
	removed, err := s.files.CollectGarbage(ctx, upload, job)
	if err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("could not remove all leftovers")
	}
	if removed > 0 {
		s.log.Info().Int("removed", removed).Msg("removed leftovers of earlier runs")
	}
	s.cleanUpFolders(ctx)
	if err := s.accounts.DeleteExpiredSessions(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("could not delete expired sessions; retrying in 24h")
	}
}

// cleanUpFolders removes folders of algorithms no longer on offer, unless a job that has
// not completed needs them: a failed one can be retried.
func (s *service) cleanUpFolders(ctx context.Context) {
	err := s.files.Removing(func() error { // not while a backup copies them
		_, err := s.folders.CollectGarbage(func(digest string) (bool, error) { return s.needsFolder(ctx, digest) })
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("could not remove all unused algorithm folders")
	}
}

func (s *service) needsFolder(ctx context.Context, digest string) (bool, error) {
	if s.catalogue.HasFolder(digest) {
		return true, nil
	}
	err := s.store.View(ctx, func(tx app.Tx) error {
		_, err := tx.NeededBy(digest)
		return err
	})
	if errors.Is(err, fault.NotFound) {
		return false, nil
	}
	return true, err
}

// retain deletes jobs and uploads by the retention rules.
func (s *service) retain(ctx context.Context) {
	done, err := s.keeper.DeleteExpired(ctx, func(e app.Expired) {
		s.log.Info().Str("job", string(e.Job)).Str("name", e.Name).Str("organization", e.Organization).Str("user", e.Email).
			Str("status", string(e.Status)).Int("rows", e.Rows).Strs("uploads", e.Uploads).Int64("bytes", e.Bytes).
			Msg("deleted by the rules of retention")
	})
	switch {
	case err != nil && ctx.Err() == nil:
		s.log.Warn().Err(err).Msg("retention failed for some items; retrying in 1h")
	case done.Doubt:
		s.log.Warn().Msg("clock is more than a day off since the last run; retention is paused for 1h")
	case done.Behind > 0:
		s.log.Warn().Dur("behind", done.Behind).Msg("clock jumped forward; each hourly retention run will advance by at most one day")
	}
}

// checkPlace detects the removal of the data directory even while nothing is written. The
// database then rejects all calls and ends the process.
func (s *service) checkPlace(context.Context) {
	_ = s.store.CheckLocation() // logs the error itself
}

// recordKeyUses periodically saves the last-used times of keys.
func (s *service) recordKeyUses(ctx context.Context) {
	s.accounts.RecordKeyUses(ctx, func(err error) {
		s.log.Warn().Err(err).Msg("could not save last-used times of API keys; retrying")
	})
}

// saveKeyUses saves the remaining times after the last request.
func (s *service) saveKeyUses() error {
	ctx, cancel := context.WithTimeout(context.Background(), abandonAfter)
	defer cancel()
	if err := s.accounts.SaveKeyUses(ctx); err != nil {
		s.log.Warn().Err(err).Msg("could not save last-used times of API keys")
	}
	return nil
}

// alive reads from the database, as nearly every request does, for the watchdog.
func (s *service) alive(ctx context.Context) error {
	return s.store.View(ctx, func(tx app.Tx) error {
		_, err := tx.Stamp()
		return err
	})
}
