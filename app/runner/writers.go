package runner

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/job/quota"
	"molrun/app/task"
)

// shareEvery is how often the write limits of running tasks are updated.
const shareEvery = 5 * time.Second

// writers holds the attempts whose tasks can write. Tasks of one user share a storage
// quota: each task measures how much it has written, and is given a new limit on its
// total.
type writers struct {
	mu  sync.Mutex
	all map[*attempt]int64 // with the last limit written for each
}

// add adds an attempt until done is called.
func (w *writers) add(a *attempt) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*attempt]int64{}
	}
	w.all[a] = 0
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, a)
	}
}

// lastShare returns the last limit written for an attempt. It returns false if the attempt no
// longer writes.
func (w *writers) lastShare(a *attempt) (share int64, writes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	share, writes = w.all[a]
	return share, writes
}

// recordShare records the limit written for an attempt.
func (w *writers) recordShare(a *attempt, share int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, writes := w.all[a]; writes {
		w.all[a] = share
	}
}

// withQuota returns the attempts whose user or organization has a storage quota.
func (w *writers) withQuota(of quota.Of) (some []*attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.all {
		for _, h := range quota.Holders(a.lease.User.Organization, a.lease.User.Email) {
			if of.For(h).Bytes > 0 {
				some = append(some, a)
				break
			}
		}
	}
	return some
}

// writing returns the app.Writing of an attempt that has written that many bytes.
func (a *attempt) writing(bytes int64) app.Writing {
	return app.Writing{Organization: a.lease.User.Organization, Email: a.lease.User.Email, Bytes: bytes}
}

// shareStorage updates the write limits of running tasks until ctx ends.
func (c *core) shareStorage(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, shareEvery)
		if err := c.shareStorageOnce(ctx); err != nil && ctx.Err() == nil {
			c.options.Log.Warn().Err(err).Msg("could not share the storage quota among running jobs; retrying")
		}
	}
}

func (c *core) shareStorageOnce(ctx context.Context) error {
	var some []*attempt
	var writing []app.Writing
	for _, a := range c.writers.withQuota(c.options.Quota) {
		bytes, err := task.ReadWritten(a.dir)
		switch {
		case err == nil:
			some, writing = append(some, a), append(writing, a.writing(bytes))
		case !errors.Is(err, fs.ErrNotExist): // otherwise nothing was measured yet
			c.options.Log.Warn().Err(err).Str("job", string(a.id)).Msg("could not read how much a job has written; retrying")
		}
	}
	if len(some) == 0 {
		return nil
	}
	callCtx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	shares, err := c.jobs.StorageShares(callCtx, writing)
	if err != nil {
		return err
	}
	for i, a := range some {
		if last, writes := c.writers.lastShare(a); !writes || last == shares[i] {
			continue
		}
		if unwritten := task.WriteQuota(a.dir, shares[i]); unwritten != nil {
			err = errors.Join(err, unwritten)
			continue
		}
		c.writers.recordShare(a, shares[i])
	}
	return err
}
