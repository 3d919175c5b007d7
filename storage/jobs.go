package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// Job returns a job with its private part.
func (t tx) Job(id app.JobID) (*app.Job, error) {
	key, err := sortid.Parse(string(id))
	if err != nil {
		return nil, noJob(string(id))
	}
	return readJob(t.Tx, key)
}

// readJob reads both parts of a job, the public and the private one.
func readJob(t *kv.Tx, id sortid.ID) (*app.Job, error) {
	shown := t.Bucket(bucketJobs).Get(id[:])
	if shown == nil {
		return nil, noJob(id.String())
	}
	return decodeJob(id, [][]byte{shown, t.Bucket(bucketJobsPrivate).Get(id[:])})
}

// decodeJob decodes the parts of a record.
func decodeJob(id sortid.ID, parts [][]byte) (*app.Job, error) {
	j, err := app.DecodeJob(parts[0], parts[1])
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	return j, nil
}

func noJob(id string) error { return fault.Errorf(fault.NotFound, "there is no job %s", id) }

// JobNamed returns the job or subjob with a name.
func (t tx) JobNamed(organization, name string) (*app.Job, error) {
	prefix := nameKey(organization, name)
	for k := range t.Descend(indexJobsName, prefix, prefix.End()) {
		id, err := k.LastID()
		if err != nil {
			return nil, err
		}
		return readJob(t.Tx, id)
	}
	return nil, fault.Errorf(fault.NotFound, "there is no job %q", name)
}

// JobJSON returns the public part of a job's record.
func (t tx) JobJSON(id app.JobID) (json.RawMessage, error) {
	key, err := sortid.Parse(string(id))
	if err != nil {
		return nil, noJob(string(id))
	}
	shown := t.Bucket(bucketJobs).Get(key[:])
	if shown == nil {
		return nil, noJob(string(id))
	}
	return bytes.Clone(shown), nil
}

// HasJob reports whether a job exists.
func (t tx) HasJob(id app.JobID) (bool, error) {
	key, err := sortid.Parse(string(id))
	if err != nil {
		return false, nil
	}
	return t.Bucket(bucketJobs).Get(key[:]) != nil, nil
}

// PutJob inserts or replaces a job.
func (t tx) PutJob(j *app.Job) error {
	e, err := j.Encoded()
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	return t.PutEncoded(e)
}

// PutEncoded is PutJob for a job that is already encoded. The public part is stored byte
// for byte, so that listings need not decode it.
func (t tx) PutEncoded(e app.EncodedJob) error {
	id, err := checkJob(e.Job)
	if err != nil {
		return fmt.Errorf("put job %q: %w", e.Job.ID, err)
	}
	old, err := present(readJob(t.Tx, id))
	if err != nil {
		return err
	}
	if err := t.Replace(bucketJobsPrivate, id[:], e.Private); err != nil {
		return err
	}
	if err := jobs.Put(t.Tx, id, e.Shown, old, e.Job); err != nil {
		return err
	}
	if err := addDeliveries(t.Tx, old, e); err != nil {
		return fmt.Errorf("add notices of job %s: %w", e.Job.ID, err)
	}
	return noteChange(t.Tx, old, e)
}

// checkJob rejects jobs that could be stored but not found again.
func checkJob(j *app.Job) (sortid.ID, error) {
	id, err := sortid.Parse(string(j.ID))
	if err != nil {
		return id, err
	}
	if !j.Status.Valid() {
		return id, fmt.Errorf("invalid status %q", j.Status)
	}
	if j.Private.Batch != "" {
		if _, err := sortid.Parse(string(j.Private.Batch)); err != nil {
			return id, fmt.Errorf("batch %q: %w", j.Private.Batch, err)
		}
	}
	for _, w := range j.Private.Waits {
		if _, err := sortid.Parse(string(w.Job)); err != nil {
			return id, fmt.Errorf("waits for %q: %w", w.Job, err)
		}
	}
	for _, r := range j.Private.References {
		if referencedID(r) == (sortid.ID{}) {
			return id, fmt.Errorf("reference of %q: neither an upload nor a job", r.Setting)
		}
	}
	return id, nil
}

// DeleteJob removes a job; its ID is never used again.
func (t tx) DeleteJob(id app.JobID) error {
	old, err := t.Job(id)
	if err != nil {
		return err
	}
	key := idOf(id)
	if err := t.Delete(bucketJobsPrivate, key[:]); err != nil {
		return err
	}
	if err := jobs.Delete(t.Tx, key, old); err != nil {
		return err
	}
	return noteDeletion(t.Tx, old)
}

// Subjobs iterates over a batch in row order, which is the order of IDs.
func (t tx) Subjobs(batch app.JobID, status app.Status) iter.Seq2[*app.Job, error] {
	id, err := sortid.Parse(string(batch))
	if err != nil {
		return func(func(*app.Job, error) bool) {} // no batch has this ID
	}
	return t.jobsOf(indexJobsBatch, batchKey(id, status))
}

// MetricNames returns the names of the metrics of a batch's rows.
func (t tx) MetricNames(batch app.JobID, most int) ([]string, error) {
	id, err := sortid.Parse(string(batch))
	if err != nil {
		return nil, nil // no batch has this ID
	}
	return metricNames(t.Tx, id, most)
}

// jobsOf iterates over the jobs in a range of an index.
func (t tx) jobsOf(index string, prefix kv.Key) iter.Seq2[*app.Job, error] {
	return func(yield func(*app.Job, error) bool) {
		for k := range t.Ascend(index, prefix) {
			id, err := k.LastID()
			if err != nil {
				yield(nil, err)
				return
			}
			j, err := readJob(t.Tx, id)
			if !yield(j, err) || err != nil {
				return
			}
		}
	}
}

// NeededBy returns an unfinished job that reads the given upload or result. Given the
// digest of an algorithm's folder, it returns a job that reads the folder and has not
// completed.
func (t tx) NeededBy(read string) (app.JobID, error) {
	id, err := sortid.Parse(read)
	if len(read) == hex.EncodedLen(sha256.Size) {
		id, err = folderID(read)
	}
	if err == nil {
		for k := range t.Ascend(indexJobsFile, kv.Key{}.ID(id)) {
			return jobAt(k)
		}
	}
	return "", fault.Errorf(fault.NotFound, "no unfinished job needs %s", read)
}

// Readers iterates over all jobs, finished or not, that read an upload or result.
func (t tx) Readers(read string) iter.Seq2[app.JobID, error] {
	return func(yield func(app.JobID, error) bool) {
		id, err := sortid.Parse(read)
		if err != nil {
			return // no upload or job has this ID
		}
		for k := range t.Ascend(indexJobsSource, kv.Key{}.ID(id)) {
			job, err := jobAt(k)
			if !yield(job, err) || err != nil {
				return
			}
		}
	}
}

const (
	indexJobsName   = "jobs.name"
	indexJobsBatch  = "jobs.batch"
	indexJobsFile   = "jobs.file"
	indexJobsSource = "jobs.source"
)

// jobName indexes jobs by organization, name and id.
func jobName(id sortid.ID, j *app.Job) []kv.Entry {
	return []kv.Entry{{Key: nameKey(j.Organization, j.Name).ID(id)}}
}

func nameKey(organization, name string) kv.Key {
	return make(kv.Key, 0, 128).Text(organization).Text(name)
}

// jobBatch indexes subjobs by batch, status (with an extra entry for all statuses) and
// id.
func jobBatch(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Private.Batch == "" {
		return nil
	}
	batch := idOf(j.Private.Batch)
	return []kv.Entry{
		{Key: batchKey(batch, "").ID(id)},
		{Key: batchKey(batch, j.Status).ID(id)},
	}
}

func batchKey(batch sortid.ID, status app.Status) kv.Key {
	return make(kv.Key, 0, 2*sortid.Size+1).ID(batch).Letter(statusLetter(status))
}

// jobFile indexes unfinished jobs by each upload or job that they read and by id. Jobs
// that have not completed are also indexed by their folder and id. Failed jobs are among
// these, because they can be retried.
func jobFile(id sortid.ID, j *app.Job) (all []kv.Entry) {
	if j.Status == app.Completed {
		return nil
	}
	if j.Status != app.Failed {
		all = jobSource(id, j)
	}
	if folder, err := folderID(j.Private.Folder); err == nil {
		all = append(all, kv.Entry{Key: kv.Key{}.ID(folder).ID(id)})
	}
	return all
}

// folderID represents the digest of a folder in keys by its first bytes, which are unique
// in practice.
func folderID(digest string) (id sortid.ID, err error) {
	b, err := hex.DecodeString(digest)
	if err == nil && len(b) < len(id) {
		err = kv.ErrKey
	}
	copy(id[:], b)
	return id, err
}

// jobSource indexes all jobs, finished or not, by each upload or job that they read and
// by id.
func jobSource(id sortid.ID, j *app.Job) []kv.Entry {
	var all []kv.Entry
	for i, r := range j.Private.References {
		source := referencedID(r)
		again := slices.ContainsFunc(j.Private.References[:i], func(other app.Reference) bool {
			return referencedID(other) == source
		})
		if !again {
			all = append(all, kv.Entry{Key: kv.Key{}.ID(source).ID(id)})
		}
	}
	return all
}

func referencedID(r app.Reference) sortid.ID {
	if r.Upload != "" {
		return idOf(r.Upload)
	}
	return idOf(r.Job)
}
