package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
)

// ReadOnly is a database that nobody changes while it is open: a snapshot, or
// that of a service that does not run. It writes nothing, not even beside the
// database.
type ReadOnly struct{ db *bolt.DB }

// OpenReadOnly opens the database at path. Others may read it meanwhile; a
// service can't start on it.
func OpenReadOnly(path string) (r *ReadOnly, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open %s: %w", path, err)
		}
	}()
	id, err := expectRecords(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Size() == 0 {
		return nil, damaged(errors.New("it is empty"))
	}
	db, err := openLocked(path, &bolt.Options{Timeout: lockWait, ReadOnly: true, PreLoadFreelist: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	err = guarded(func() error { return errors.Join(expectDatabase(db, id), expectSchema(db)) })
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ReadOnly{db}, nil
}

// expectSchema refuses what this version can't read.
func expectSchema(db *bolt.DB) error {
	schema, err := readSchema(db)
	switch {
	case err != nil:
		return err
	case schema == 0:
		return damaged(errors.New("it has no records"))
	}
	return refuseNewer(schema, 1+len(migrations))
}

// Close gives the file free.
func (r *ReadOnly) Close() error { return r.db.Close() }

// Info says what a database is.
type Info struct {
	ID     string // its name, the same in all copies
	Schema int
	Commit int64  // number of its last commit
	Lost   string // what it has lost according to the file beside it, in words
}

// Info tells which database this is.
func (r *ReadOnly) Info() (info Info, err error) {
	var lineage string
	err = r.view(func(t *tx) error {
		meta := t.bucket(bucketMeta)
		info = Info{ID: string(meta.Get([]byte(metaID))), Commit: int64(t.bolt.ID())}
		lineage = string(meta.Get([]byte(metaLineage)))
		info.Schema, err = strconv.Atoi(string(meta.Get([]byte(metaSchema))))
		return err
	})
	if err != nil {
		return info, err
	}
	if beside, err := ReadCommits(r.db.Path()); err == nil {
		info.Lost = beside.lacking(lineage, info.Commit)
	}
	return info, nil
}

// CopyTo writes the database to a new file, whole or not at all.
func (r *ReadOnly) CopyTo(ctx context.Context, path string) error {
	if err := snapshot(ctx, r.db, path); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}

// Jobs walks all jobs of all organizations, batches and subjobs too, oldest
// first. A record that can't be read is an error in its place.
func (r *ReadOnly) Jobs(ctx context.Context) iter.Seq2[*app.Job, error] {
	return records(ctx, r, bucketJobs, readJob)
}

// Uploads walks all uploads, oldest first, as Jobs does.
func (r *ReadOnly) Uploads(ctx context.Context) iter.Seq2[*app.Upload, error] {
	return records(ctx, r, bucketUploads, readUpload)
}

func records[T any](
	ctx context.Context, r *ReadOnly, bucket string, read func(*tx, app.IDBytes) (*T, error),
) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		stopped := errors.New("stopped")
		err := r.view(func(t *tx) error {
			for k := range t.ascend(bucket, nil) {
				if err := ctx.Err(); err != nil {
					return err
				}
				id, err := k.lastID()
				var v *T
				if err == nil {
					v, err = read(t, id)
				}
				if !yield(v, err) {
					return stopped
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(nil, err)
		}
	}
}

// Report is what Check has found.
type Report struct {
	Jobs      int       `json:"jobs"` // with batches and subjobs
	Uploads   int       `json:"uploads"`
	Keys      int       `json:"keys"`
	Count     int       `json:"problems"`  // in all
	Derivable int       `json:"derivable"` // of them, Repair puts right
	Problems  []Problem `json:"first"`     // the first of them

	// Readable is whether records can be looked at: pages and buckets are sound.
	Readable bool `json:"readable"`
}

// Check reads the whole database and reports whatever disagrees, as
// Store.Check does.
func (r *ReadOnly) Check(ctx context.Context) (*Report, error) {
	var found problems
	report := &Report{}
	err := r.checkPages(ctx, &found)
	if err == nil && found.count == 0 {
		err = r.view(func(t *tx) error {
			if checkBuckets(t, &found); found.count > 0 {
				return nil
			}
			report.Readable = true
			report.Jobs, report.Uploads = count(t, bucketJobs), count(t, bucketUploads)
			report.Keys = count(t, bucketKeys)
			floor, err := readFloor(r.db)
			if err != nil {
				return err
			}
			return checkRecords(ctx, t, floor, &found)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	report.Count, report.Derivable, report.Problems = found.count, found.derivable, found.first
	return report, nil
}

func count(t *tx, bucket string) int { return t.bucket(bucket).Stats().KeyN }

// checkPages reads every page. First all entries are walked: bbolt's own check
// runs where a part of the file that the disk does not give would end the
// process. It can't be told to stop, so ctx is heeded before it.
func (r *ReadOnly) checkPages(ctx context.Context, found *problems) error {
	walked := r.view(func(t *tx) error {
		return t.bolt.ForEach(func(_ []byte, b *bolt.Bucket) error { return walkBucket(ctx, b) })
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if walked != nil {
		found.addf("%v", walked)
		return nil
	}
	return r.db.View(func(b *bolt.Tx) error {
		for err := range b.Check() {
			found.addf("%v", err)
		}
		return nil
	})
}

// walkBucket touches the ends of every key and value.
func walkBucket(ctx context.Context, b *bolt.Bucket) error {
	touched := byte(0)
	return b.ForEach(func(k, v []byte) error {
		for _, bytes := range [][]byte{k, v} {
			if n := len(bytes); n > 0 {
				touched += bytes[0] + bytes[n-1]
			}
		}
		return ctx.Err()
	})
}

// checkBuckets finds missing buckets. Those of indexes are derivable.
func checkBuckets(t *tx, found *problems) {
	indexes := map[string]bool{}
	for _, name := range indexNames() {
		indexes[name] = true
	}
	for _, name := range bucketNames() {
		switch {
		case t.bolt.Bucket([]byte(name)) != nil:
		case indexes[name]:
			found.derivef("the index %s is missing", name)
		default:
			found.addf("the records %s are missing", name)
		}
	}
}

// view runs fn in a read transaction. Damage that bbolt meets is an error, as
// is a part of the file that the disk does not give.
func (r *ReadOnly) view(fn func(*tx) error) error {
	return guarded(func() error {
		b, err := r.db.Begin(false)
		if err != nil {
			return err
		}
		defer func() { _ = b.Rollback() }() // of a read transaction: it cannot fail
		t := &tx{bolt: b}
		defer func() { t.bolt = nil }()
		return fn(t)
	})
}

// Job gives a job, NotFound where there is none.
func (r *ReadOnly) Job(id app.JobID) (j *app.Job, err error) {
	err = r.view(func(t *tx) (err error) {
		j, err = t.Job(id)
		return err
	})
	return j, err
}

// Upload gives an upload, NotFound where there is none.
func (r *ReadOnly) Upload(id app.UploadID) (u *app.Upload, err error) {
	err = r.view(func(t *tx) (err error) {
		u, err = t.Upload(id)
		return err
	})
	return u, err
}
