package simulation

import (
	"context"
	"encoding/json"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/notice"
	"molrun/storage"
)

// change is the effect of one call of Update.
type change struct {
	label   label
	order   int64 // sequence number of the closure's last run
	ran     bool
	jobs    []*jobChange // last change of each job
	puts    []*jobChange // all changes, in order
	uploads []*uploadChange
	hooks   []*hookChange
	refused bool // rejected because the disk was full
	err     error
}

// jobChange is a job after a transaction; now is nil if it was deleted.
type jobChange struct {
	id  app.JobID
	now *stored
}

// stored is a job as written to the store: the record that users see, and the private
// part.
type stored struct {
	app.Job
	shown, private string
}

func asStored(j *app.Job) (*stored, error) {
	s := &stored{Job: *j}
	if j.Counts != nil {
		counts := *j.Counts
		s.Counts = &counts
	}
	shown, err := j.Encode()
	if err != nil {
		return nil, err
	}
	private, err := json.Marshal(&j.Private)
	s.shown, s.private = string(shown), string(private)
	return s, err
}

// note records a change of a job within the transaction.
func (c *change) note(id app.JobID, now *stored) {
	c.puts = append(c.puts, &jobChange{id, now})
	for _, j := range c.jobs {
		if j.id == id {
			j.now = now
			return
		}
	}
	c.jobs = append(c.jobs, &jobChange{id, now})
}

// guardedStore is the real store behind a door. While the simulated disk is full, it
// rolls back every change.
type guardedStore struct {
	*storage.Store
	door *door
	site *site
}

func (s *guardedStore) View(ctx context.Context, fn func(app.Tx) error) error {
	if s.door.isDead() {
		return errDead
	}
	s.door.stall()
	return s.Store.View(ctx, fn)
}

func (s *guardedStore) Update(ctx context.Context, fn func(app.Tx) error) error {
	if ctx.Err() != nil {
		return s.Store.Update(ctx, fn) // returns an error
	}
	l := labelOf(ctx)
	if err := s.door.knock(&visit{label: l, enters: true}); err != nil {
		return err
	}
	c := &change{label: l}
	err := s.Store.Update(ctx, func(tx app.Tx) error {
		*c = change{label: l, order: s.site.order.Add(1), ran: true}
		w := &watchedTx{Tx: tx, change: c, site: s.site}
		err := fn(w)
		if err == nil && w.changed && s.site.full() {
			c.refused = true
			return fault.Errorf(fault.StorageFull, "the simulated disk is full")
		}
		return err
	})
	c.err = err
	if dead := s.door.knock(&visit{label: l, leaves: true, change: c}); dead != nil {
		return dead
	}
	return err
}

// watchedTx records what a closure changes.
type watchedTx struct {
	app.Tx
	change  *change
	site    *site
	changed bool
}

func (w *watchedTx) PutJob(j *app.Job) error {
	w.changed = true
	now, err := asStored(j)
	if err != nil {
		return err
	}
	w.site.names.learn(j)
	w.change.note(j.ID, now)
	return w.Tx.PutJob(j)
}

func (w *watchedTx) PutEncoded(e app.EncodedJob) error { return w.PutJob(e.Job) }

func (w *watchedTx) DeleteJob(id app.JobID) error {
	w.changed = true
	w.change.note(id, nil)
	return w.Tx.DeleteJob(id)
}

func (w *watchedTx) PutUpload(u *app.Upload) error {
	w.changed = true
	now := *u
	w.change.uploads = append(w.change.uploads, &uploadChange{u.ID, &now})
	return w.Tx.PutUpload(u)
}

func (w *watchedTx) DeleteUpload(id app.UploadID) error {
	w.changed = true
	w.change.uploads = append(w.change.uploads, &uploadChange{id, nil})
	return w.Tx.DeleteUpload(id)
}

func (w *watchedTx) PutHook(h *notice.Hook) error {
	w.changed = true
	now := *h
	w.change.hooks = append(w.change.hooks, &hookChange{h.ID, &now})
	return w.Tx.PutHook(h)
}

func (w *watchedTx) DeleteHook(id string) error {
	w.changed = true
	w.change.hooks = append(w.change.hooks, &hookChange{id, nil})
	return w.Tx.DeleteHook(id)
}

func (w *watchedTx) PutDelivery(d *notice.Delivery) error {
	w.changed = true
	return w.Tx.PutDelivery(d)
}

func (w *watchedTx) PutStamp(at time.Time) error {
	w.changed = true
	return w.Tx.PutStamp(at)
}

func (w *watchedTx) PutDefinition(digest string, text []byte) error {
	w.changed = true
	return w.Tx.PutDefinition(digest, text)
}
