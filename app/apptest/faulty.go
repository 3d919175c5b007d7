package apptest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"molrun/app"
	"molrun/app/apikey"
	"molrun/app/eta"
	"molrun/app/events"
	"molrun/app/spent"
)

// ErrBroken is what a call that fails returns.
var ErrBroken = errors.New("the store is broken")

// FaultyStore is a real store of which one call within a transaction fails.
type FaultyStore struct {
	app.Store
	Failing int // the call that fails, counted from 1
	Calls   int // so far
}

// View runs fn on a transaction that may fail.
func (s *FaultyStore) View(ctx context.Context, fn func(app.Tx) error) error {
	return s.Store.View(ctx, s.counted(fn))
}

// Update runs fn on a transaction that may fail.
func (s *FaultyStore) Update(ctx context.Context, fn func(app.Tx) error) error {
	return s.Store.Update(ctx, s.counted(fn))
}

// counted counts the calls of a closure that runs twice only once.
func (s *FaultyStore) counted(fn func(app.Tx) error) func(app.Tx) error {
	before := s.Calls
	return func(tx app.Tx) error {
		s.Calls = before
		return fn(faultyTx{tx, s})
	}
}

func (s *FaultyStore) call() error {
	if s.Calls++; s.Calls == s.Failing {
		return ErrBroken
	}
	return nil
}

// faultyTx is a transaction of a FaultyStore.
type faultyTx struct {
	app.Tx
	store *FaultyStore
}

func orFault[T any](s *FaultyStore, read func() (T, error)) (v T, err error) {
	if err = s.call(); err == nil {
		v, err = read()
	}
	return v, err
}

func (t faultyTx) or(write func() error) error {
	if err := t.store.call(); err != nil {
		return err
	}
	return write()
}

func orFaults[T any](s *FaultyStore, walk iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range walk {
			if err == nil {
				err = s.call()
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

func (t faultyTx) Job(id app.JobID) (*app.Job, error) {
	return orFault(t.store, func() (*app.Job, error) { return t.Tx.Job(id) })
}

func (t faultyTx) JobNamed(organization, name string) (*app.Job, error) {
	return orFault(t.store, func() (*app.Job, error) { return t.Tx.JobNamed(organization, name) })
}

func (t faultyTx) JobJSON(id app.JobID) (json.RawMessage, error) {
	return orFault(t.store, func() (json.RawMessage, error) { return t.Tx.JobJSON(id) })
}

func (t faultyTx) HasJob(id app.JobID) (bool, error) {
	return orFault(t.store, func() (bool, error) { return t.Tx.HasJob(id) })
}

func (t faultyTx) PutJob(j *app.Job) error { return t.or(func() error { return t.Tx.PutJob(j) }) }

func (t faultyTx) PutEncoded(j app.EncodedJob) error {
	return t.or(func() error { return t.Tx.PutEncoded(j) })
}

func (t faultyTx) DeleteJob(id app.JobID) error {
	return t.or(func() error { return t.Tx.DeleteJob(id) })
}

func (t faultyTx) Jobs(f app.JobFilter, after app.Position, limit int) (app.JobPage, error) {
	return orFault(t.store, func() (app.JobPage, error) { return t.Tx.Jobs(f, after, limit) })
}

func (t faultyTx) JobIDs(f app.JobFilter, after app.Position, limit int) (ids []app.JobID, end app.Position, err error) {
	if err = t.store.call(); err == nil {
		ids, end, err = t.Tx.JobIDs(f, after, limit)
	}
	return ids, end, err
}

func (t faultyTx) MetricNames(batch app.JobID, most int) ([]string, error) {
	return orFault(t.store, func() ([]string, error) { return t.Tx.MetricNames(batch, most) })
}

func (t faultyTx) JobShares(organization, email string) iter.Seq2[app.JobShare, error] {
	return orFaults(t.store, t.Tx.JobShares(organization, email))
}

func (t faultyTx) LastEvent(organization string) (events.ID, error) {
	return orFault(t.store, func() (events.ID, error) { return t.Tx.LastEvent(organization) })
}

func (t faultyTx) EventsAfter(organization string, after events.ID, limit int) (all []events.Entry, known bool, err error) {
	if err = t.store.call(); err == nil {
		all, known, err = t.Tx.EventsAfter(organization, after, limit)
	}
	return all, known, err
}

func (t faultyTx) Dependants(job app.JobID, how app.Dependence) iter.Seq2[app.JobID, error] {
	return orFaults(t.store, t.Tx.Dependants(job, how))
}

func (t faultyTx) Unsettled() (app.JobID, error) { return orFault(t.store, t.Tx.Unsettled) }

func (t faultyTx) QueueLines(executor string) ([]app.QueueLine, error) {
	return orFault(t.store, func() ([]app.QueueLine, error) { return t.Tx.QueueLines(executor) })
}

func (t faultyTx) Runs(class string) ([]eta.Run, error) {
	return orFault(t.store, func() ([]eta.Run, error) { return t.Tx.Runs(class) })
}

func (t faultyTx) AddRun(class string, r eta.Run) error {
	return t.or(func() error { return t.Tx.AddRun(class, r) })
}

func (t faultyTx) PutDrained(d *app.Drain) error {
	return t.or(func() error { return t.Tx.PutDrained(d) })
}

func (t faultyTx) Subjobs(batch app.JobID, status app.Status) iter.Seq2[*app.Job, error] {
	return orFaults(t.store, t.Tx.Subjobs(batch, status))
}

func (t faultyTx) Queue(executor string, visit func(app.Waiting) app.Visit) error {
	return t.or(func() error { return t.Tx.Queue(executor, visit) })
}

func (t faultyTx) Claims() iter.Seq2[app.Claimed, error] { return orFaults(t.store, t.Tx.Claims()) }
func (t faultyTx) Active() iter.Seq2[*app.Job, error]    { return orFaults(t.store, t.Tx.Active()) }

func (t faultyTx) NeededBy(source string) (app.JobID, error) {
	return orFault(t.store, func() (app.JobID, error) { return t.Tx.NeededBy(source) })
}

func (t faultyTx) Readers(source string) iter.Seq2[app.JobID, error] {
	return orFaults(t.store, t.Tx.Readers(source))
}

func (t faultyTx) Finished(organization string, status app.Status, after app.Ended) iter.Seq2[app.Ended, error] {
	return orFaults(t.store, t.Tx.Finished(organization, status, after))
}

func (t faultyTx) Newest(organization, email string, limit int) ([]app.Ended, error) {
	return orFault(t.store, func() ([]app.Ended, error) { return t.Tx.Newest(organization, email, limit) })
}

func (t faultyTx) Upload(id app.UploadID) (*app.Upload, error) {
	return orFault(t.store, func() (*app.Upload, error) { return t.Tx.Upload(id) })
}

func (t faultyTx) UploadNamed(organization, email, folder, filename string) (*app.Upload, error) {
	return orFault(t.store, func() (*app.Upload, error) { return t.Tx.UploadNamed(organization, email, folder, filename) })
}

func (t faultyTx) PutUpload(u *app.Upload) error {
	return t.or(func() error { return t.Tx.PutUpload(u) })
}

func (t faultyTx) DeleteUpload(id app.UploadID) error {
	return t.or(func() error { return t.Tx.DeleteUpload(id) })
}

func (t faultyTx) Uploads(f app.UploadFilter, after app.Position, limit int) (app.UploadPage, error) {
	return orFault(t.store, func() (app.UploadPage, error) { return t.Tx.Uploads(f, after, limit) })
}

func (t faultyTx) OldestUploads(after app.UploadID) iter.Seq2[*app.Upload, error] {
	return orFaults(t.store, t.Tx.OldestUploads(after))
}

func (t faultyTx) CountJobs(f app.JobFilter, most int) (n int, more bool, err error) {
	if err := t.store.call(); err != nil {
		return 0, false, err
	}
	return t.Tx.CountJobs(f, most)
}

func (t faultyTx) Statuses(organization, email string) (app.Counts, error) {
	return orFault(t.store, func() (app.Counts, error) { return t.Tx.Statuses(organization, email) })
}

func (t faultyTx) Stored(organization, user string) (app.Usage, error) {
	return orFault(t.store, func() (app.Usage, error) { return t.Tx.Stored(organization, user) })
}

func (t faultyTx) Organizations() ([]string, error) {
	return orFault(t.store, t.Tx.Organizations)
}

func (t faultyTx) Usage() iter.Seq2[app.UsageShare, error] { return orFaults(t.store, t.Tx.Usage()) }

func (t faultyTx) Spent(organization string, from, until time.Time) iter.Seq2[spent.Share, error] {
	return orFaults(t.store, t.Tx.Spent(organization, from, until))
}

func (t faultyTx) Stamp() (time.Time, error) { return orFault(t.store, t.Tx.Stamp) }

func (t faultyTx) PutStamp(at time.Time) error {
	return t.or(func() error { return t.Tx.PutStamp(at) })
}

func (t faultyTx) Key(id string) (*apikey.Key, error) {
	return orFault(t.store, func() (*apikey.Key, error) { return t.Tx.Key(id) })
}

func (t faultyTx) PutKey(k *apikey.Key) error { return t.or(func() error { return t.Tx.PutKey(k) }) }

func (t faultyTx) DeleteKey(id string) error { return t.or(func() error { return t.Tx.DeleteKey(id) }) }

func (t faultyTx) Keys() ([]*apikey.Key, error) {
	return orFault(t.store, func() ([]*apikey.Key, error) { return t.Tx.Keys() })
}

func (t faultyTx) Share(id app.ShareID) (*app.Share, error) {
	return orFault(t.store, func() (*app.Share, error) { return t.Tx.Share(id) })
}

func (t faultyTx) PutShare(s *app.Share) error {
	return t.or(func() error { return t.Tx.PutShare(s) })
}

func (t faultyTx) DeleteShare(id app.ShareID) error {
	return t.or(func() error { return t.Tx.DeleteShare(id) })
}

func (t faultyTx) Shares(organization string) iter.Seq2[*app.Share, error] {
	return orFaults(t.store, t.Tx.Shares(organization))
}

func (t faultyTx) User(organization, email string) (*apikey.User, error) {
	return orFault(t.store, func() (*apikey.User, error) { return t.Tx.User(organization, email) })
}

func (t faultyTx) PutUser(u *apikey.User) error {
	return t.or(func() error { return t.Tx.PutUser(u) })
}

func (t faultyTx) DeleteUser(organization, email string) error {
	return t.or(func() error { return t.Tx.DeleteUser(organization, email) })
}

func (t faultyTx) Users() ([]*apikey.User, error) {
	return orFault(t.store, t.Tx.Users)
}

func (t faultyTx) Definition(digest string) ([]byte, error) {
	return orFault(t.store, func() ([]byte, error) { return t.Tx.Definition(digest) })
}

func (t faultyTx) PutDefinition(digest string, text []byte) error {
	return t.or(func() error { return t.Tx.PutDefinition(digest, text) })
}
