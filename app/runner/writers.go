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

// shareEvery is how often running tasks are told what they may still write.
const shareEvery = 5 * time.Second

// writers are the attempts whose tasks may write. Those of one user share a storage quota:
// each task measures what it has written, and is told how much it may in all.
type writers struct {
	mu  sync.Mutex
	all map[*attempt]int64 // with what it was told last
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

// last returns what an attempt was told last, false if it no longer writes.
func (w *writers) last(a *attempt) (share int64, writes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	share, writes = w.all[a]
	return share, writes
}

// told notes what an attempt was told.
func (w *writers) told(a *attempt, share int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, writes := w.all[a]; writes {
		w.all[a] = share
	}
}

// within returns the attempts whose user or organization has a quota of storage.
func (w *writers) within(of quota.Of) (some []*attempt) {
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

// writing returns the attempt as one that has written so many bytes.
func (a *attempt) writing(bytes int64) app.Writing {
	return app.Writing{Organization: a.lease.User.Organization, Email: a.lease.User.Email, Bytes: bytes}
}

// shareStorage tells running tasks what they may write, until ctx ends.
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
	for _, a := range c.writers.within(c.options.Quota) {
		bytes, err := task.ReadWritten(a.dir)
		switch {
		case err == nil:
			some, writing = append(some, a), append(writing, a.writing(bytes))
		case !errors.Is(err, fs.ErrNotExist): // else nothing was measured yet
			c.options.Log.Warn().Err(err).Str("job", string(a.id)).Msg("could not read what a job has written; retrying")
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
		if last, writes := c.writers.last(a); !writes || last == shares[i] {
			continue
		}
		if unwritten := task.WriteShare(a.dir, shares[i]); unwritten != nil {
			err = errors.Join(err, unwritten)
			continue
		}
		c.writers.told(a, shares[i])
	}
	return err
}
