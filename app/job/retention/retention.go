// Package retention deletes finished jobs and old uploads: by the rules of an
// organization, or when the operator prunes. It also reports storage usage.
package retention

import (
	"context"
	"errors"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/job/quota"
)

// Rules defines when finished jobs and uploads are deleted; 0 means never. Pinned jobs
// are exempt.
type Rules struct {
	Completed time.Duration // how long completed jobs are kept
	Failed    time.Duration // how long failed jobs are kept
	Uploads   time.Duration // how long unused uploads are kept
	Total     int64         // bytes of the organization; if exceeded, the oldest jobs are deleted

	// KeepLast is how many of the newest finished jobs are always kept: per user with
	// KeepPerUser, otherwise per organization.
	KeepLast    int
	KeepPerUser bool
}

const (
	// retainPage is how many jobs one transaction reads.
	retainPage = 200
	// clockLeap is the largest trusted difference between the clock and the last run.
	// After a larger one, nothing is deleted for clockDoubt. If the clock has jumped
	// ahead, the rules then follow it by clockLeap per run, so a clock that is years
	// ahead costs one day of retention per hour until it is corrected.
	clockLeap  = 24 * time.Hour
	clockDoubt = time.Hour
)

// Keeper applies the rules, prunes, and reports.
type Keeper struct {
	store   app.Store
	blobs   app.Blobs
	jobs    *app.Jobs
	options Options

	doubtSince time.Time // zero if the clock is trusted
}

// Options configures a Keeper.
type Options struct {
	Now   func() time.Time
	Rules func(organization string) Rules // nil disables automatic deletion
	Quota quota.Of

	// Partial is how long the data of an interrupted resumable upload is kept after its
	// last bytes arrived; 0 means forever.
	Partial time.Duration
}

// New returns a keeper of the records in store and the files in blobs.
func New(store app.Store, blobs app.Blobs, jobs *app.Jobs, o Options) *Keeper {
	return &Keeper{store: store, blobs: blobs, jobs: jobs, options: o}
}

// Retained is the result of a retention pass.
type Retained struct {
	Doubt   bool          // the clock jumped, and nothing was deleted
	Behind  time.Duration // how far the rules still lag behind a clock that jumped ahead
	Deleted int
}

// DeleteExpired deletes everything that the rules of each organization no longer keep and
// the data of stalled resumable uploads, and reports each deletion to gone. It must be
// called at startup and every hour, never concurrently. If the clock differs from the
// last run by more than a day, it deletes nothing for an hour and then follows the clock
// by a day per run, leaving time to correct a wrong clock.
func (k *Keeper) DeleteExpired(ctx context.Context, gone func(app.Expired)) (r Retained, err error) {
	now, behind, trusted, err := k.clock(ctx)
	if err != nil || !trusted {
		return Retained{Doubt: err == nil}, err
	}
	r.Behind = behind
	var organizations []string
	err = k.store.View(ctx, func(tx app.Tx) (err error) {
		organizations, err = tx.Organizations()
		return err
	})
	notify := func(e *app.Expired) {
		r.Deleted++
		gone(*e)
	}
	for _, organization := range organizations {
		p := pass{Keeper: k, organization: organization, now: now, gone: notify}
		if k.options.Rules != nil {
			p.rules = k.options.Rules(organization)
		}
		err = errors.Join(err, p.deleteAll(ctx))
	}
	err = errors.Join(err, k.dropPartials(ctx, now, notify))
	if err == nil {
		err = k.store.Update(ctx, func(tx app.Tx) error { return tx.PutStamp(now) })
	}
	return r, err
}

// clock compares the clock with the last run, or for the first run with the newest
// record. It returns the time to apply the rules at and how far that is behind the clock.
// The stored stamp is unchanged while the clock is in doubt, so a restart does not end
// the doubt.
func (k *Keeper) clock(ctx context.Context) (now time.Time, behind time.Duration, trusted bool, err error) {
	var last time.Time
	err = k.store.View(ctx, func(tx app.Tx) (err error) {
		last, err = tx.Stamp()
		return err
	})
	now = k.options.Now()
	if err != nil {
		return now, 0, false, err
	}
	if last.IsZero() {
		floor := k.store.HighWaterMark()
		if floor == (sortid.ID{}) {
			return now, 0, true, nil // there is nothing to delete yet
		}
		last = floor.Time()
	}
	leap := now.Round(0).Sub(last)
	if leap.Abs() <= clockLeap {
		k.doubtSince = time.Time{}
		return now, 0, true, nil
	}
	if k.doubtSince.IsZero() {
		k.doubtSince = now
	}
	if now.Sub(k.doubtSince) < clockDoubt {
		return now, 0, false, nil
	}
	if leap > 0 {
		now, behind = last.Add(clockLeap), leap-clockLeap
	}
	return now, behind, true, nil
}

// pass applies the rules of one organization.
type pass struct {
	*Keeper
	organization string
	rules        Rules
	now          time.Time
	gone         func(*app.Expired)
	firstKept    map[string]app.Ended // oldest job kept by KeepLast, by user; "" for all users
}

func (p *pass) deleteAll(ctx context.Context) error {
	p.firstKept = map[string]app.Ended{}
	return errors.Join(
		p.byAge(ctx, app.Failed, p.rules.Failed),
		p.byAge(ctx, app.Completed, p.rules.Completed),
		p.oldUploads(ctx),
		p.byTotal(ctx),
	)
}

// byAge deletes jobs that ended with this status longer ago than age.
func (p *pass) byAge(ctx context.Context, status app.Status, age time.Duration) error {
	if age <= 0 {
		return nil
	}
	until := p.now.Add(-age)
	return p.walk(ctx, []app.Status{status}, due{
		now:     func(e app.Ended) bool { return e.At.Before(until) },
		worth:   func(*app.Job) bool { return true },
		deleted: func(*app.Expired) {},
	})
}

// byTotal deletes the oldest jobs until the total is within its limit.
func (p *pass) byTotal(ctx context.Context) error {
	if p.rules.Total <= 0 {
		return nil
	}
	var excess int64
	err := p.store.View(ctx, func(tx app.Tx) error {
		used, err := tx.Stored(p.organization, "")
		excess = used.Bytes - p.rules.Total
		return err
	})
	if err != nil {
		return err
	}
	return p.walk(ctx, []app.Status{app.Completed, app.Failed}, due{
		now:     func(app.Ended) bool { return excess > 0 },
		worth:   storesAny,
		deleted: func(e *app.Expired) { excess -= e.Counted },
	})
}

// storesAny reports whether deleting a job might free space.
func storesAny(j *app.Job) bool {
	return j.IsBatch() || j.Usage().Bytes > 0 || len(app.UploadsOf([]*app.Job{j})) > 0
}

// due selects the jobs that a walk deletes.
type due struct {
	now     func(app.Ended) bool // returns false to end the walk
	worth   func(*app.Job) bool
	deleted func(*app.Expired) // called for each deleted job
}

// walk deletes jobs in order of their end, oldest first.
func (p *pass) walk(ctx context.Context, statuses []app.Status, due due) error {
	var all error
	for after := (app.Ended{}); ctx.Err() == nil; {
		page, err := p.page(ctx, statuses, after)
		if err != nil || len(page) == 0 {
			return errors.Join(all, err)
		}
		for _, e := range page {
			if ctx.Err() != nil || !due.now(e) {
				return errors.Join(all, ctx.Err())
			}
			after = e
			gone, err := p.consider(ctx, e, due.worth)
			all = errors.Join(all, err) // continue with the other jobs
			if gone != nil {
				p.gone(gone)
				due.deleted(gone)
			}
		}
	}
	return errors.Join(all, ctx.Err())
}

// page returns the next jobs, oldest end first.
func (p *pass) page(ctx context.Context, statuses []app.Status, after app.Ended) (page []app.Ended, err error) {
	err = p.store.View(ctx, func(tx app.Tx) error {
		for _, status := range statuses {
			n := 0
			for e, err := range tx.Finished(p.organization, status, after) {
				if err != nil {
					return err
				}
				page = append(page, e)
				if n++; n == retainPage {
					break
				}
			}
		}
		return nil
	})
	slices.SortFunc(page, app.Ended.Compare)
	return page[:min(retainPage, len(page))], err
}

// consider deletes a job unless KeepLast keeps it or it has changed.
func (p *pass) consider(ctx context.Context, e app.Ended, worth func(*app.Job) bool) (*app.Expired, error) {
	var stays bool
	err := p.store.View(ctx, func(tx app.Tx) (err error) {
		stays, err = p.isLast(tx, e)
		return err
	})
	if stays || err != nil {
		return nil, err
	}
	return p.jobs.Expire(ctx, e.ID, func(j *app.Job) bool { return j.CompletedAt.Equal(e.At) && worth(j) })
}

// isLast reports whether KeepLast keeps a job.
func (p *pass) isLast(tx app.Tx, e app.Ended) (bool, error) {
	if p.rules.KeepLast <= 0 {
		return false, nil
	}
	user := ""
	if p.rules.KeepPerUser {
		j, err := tx.Job(e.ID)
		if errors.Is(err, fault.NotFound) {
			return true, nil // it is already deleted
		}
		if err != nil {
			return false, err
		}
		user = j.Email
	}
	first, known := p.firstKept[user]
	if !known {
		last, err := tx.Newest(p.organization, user, p.rules.KeepLast)
		if err != nil {
			return false, err
		}
		if len(last) > 0 {
			first = last[len(last)-1]
		}
		p.firstKept[user] = first
	}
	return e.Compare(first) >= 0, nil
}

func (p *pass) oldUploads(ctx context.Context) error {
	if p.rules.Uploads <= 0 {
		return nil
	}
	until := p.now.Add(-p.rules.Uploads)
	var all error
	for after := app.UploadID(""); ctx.Err() == nil; {
		var due []*app.Upload
		looked := 0
		err := p.store.View(ctx, func(tx app.Tx) error {
			for u, err := range tx.OldestUploads(after) {
				if err != nil || !u.CreatedAt.Before(until) || looked == retainPage {
					return err
				}
				after = u.ID
				looked++
				if u.Organization == p.organization {
					due = append(due, u)
				}
			}
			return nil
		})
		if err != nil || looked == 0 {
			return errors.Join(all, err)
		}
		for _, u := range due {
			all = errors.Join(all, p.expireUpload(ctx, u.ID, until))
		}
	}
	return errors.Join(all, ctx.Err())
}

// expireUpload deletes an upload unless a job refers to it or it was completed recently.
func (p *pass) expireUpload(ctx context.Context, id app.UploadID, until time.Time) error {
	var u *app.Upload
	err := p.store.Update(ctx, func(tx app.Tx) error {
		u = nil
		found, err := tx.Upload(id)
		if errors.Is(err, fault.NotFound) || err == nil && !found.CompletedAt.Before(until) {
			return nil
		}
		if err != nil {
			return err
		}
		if read, err := app.IsRead(tx, id); read || err != nil {
			return err
		}
		u = found
		return tx.DeleteUpload(id)
	})
	if u == nil || err != nil {
		return err
	}
	p.gone(&app.Expired{
		Organization: u.Organization, Email: u.Email, Uploads: []string{u.Folder + "/" + u.Filename}, Bytes: u.Usage().Bytes,
	})
	if u.Partial != nil {
		err = p.blobs.RemovePartial(u.ID, u.Partial.Generation)
	}
	if u.Generation == 0 {
		return err
	}
	return errors.Join(err, p.blobs.RemoveUpload(u.ID, u.Generation))
}
