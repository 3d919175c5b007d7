package storage

import (
	"context"
	"fmt"
	"iter"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// ReadOnly is a store without writers: a snapshot, or the database of a stopped service.
type ReadOnly struct{ *kv.ReadOnly }

// OpenReadOnly opens the database at path. Other processes can read it at the same time,
// but a service cannot start on it.
func OpenReadOnly(path string) (*ReadOnly, error) {
	r, err := kv.OpenReadOnly(path, schema)
	if err != nil {
		return nil, err
	}
	return &ReadOnly{r}, nil
}

// Jobs iterates over all jobs of all organizations, including batches and subjobs, oldest
// first. It yields an error for each unreadable record.
func (r *ReadOnly) Jobs(ctx context.Context) iter.Seq2[*app.Job, error] {
	return records(ctx, r, &jobs)
}

// Uploads iterates over all uploads, oldest first, like Jobs.
func (r *ReadOnly) Uploads(ctx context.Context) iter.Seq2[*app.Upload, error] {
	return records(ctx, r, &uploads)
}

func records[T any](ctx context.Context, r *ReadOnly, table *kv.Table[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		stopped := false
		visit := func(_ sortid.ID, v *T, err error) bool {
			stopped = stopped || !yield(v, err)
			return !stopped
		}
		bad := func(k kv.Key) {
			if !stopped {
				stopped = !yield(nil, fmt.Errorf("%s: the key %x is not an ID", table.Bucket, []byte(k)))
			}
		}
		err := r.View(func(t *kv.Tx) error { return table.Scan(ctx, t, bad, visit) })
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// Job returns a job, or NotFound if it does not exist.
func (r *ReadOnly) Job(id app.JobID) (j *app.Job, err error) {
	err = r.View(func(t *kv.Tx) (err error) {
		j, err = newTx(t).Job(id)
		return err
	})
	return j, err
}

// Upload returns an upload, or NotFound if it does not exist.
func (r *ReadOnly) Upload(id app.UploadID) (u *app.Upload, err error) {
	err = r.View(func(t *kv.Tx) (err error) {
		u, err = newTx(t).Upload(id)
		return err
	})
	return u, err
}

// Definition returns the text of the algorithm file with a digest, or NotFound if it does
// not exist.
func (r *ReadOnly) Definition(digest string) (text []byte, err error) {
	err = r.View(func(t *kv.Tx) (err error) {
		text, err = newTx(t).Definition(digest)
		return err
	})
	return text, err
}

// Report is the result of a check.
type Report struct {
	*kv.Report
	Jobs    int // including batches and subjobs
	Uploads int
	Keys    int
}

// Check reads the whole database and reports every inconsistency.
func (r *ReadOnly) Check(ctx context.Context) (*Report, error) {
	found, err := r.ReadOnly.Check(ctx)
	if err != nil {
		return nil, err
	}
	return &Report{found, found.Entries[bucketJobs], found.Entries[bucketUploads], found.Entries[bucketKeys]}, nil
}
