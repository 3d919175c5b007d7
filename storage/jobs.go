package storage

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/placement"
)

// jobs keeps a job as clients see it, byte for byte, so that a listing copies
// and does not decode; what they do not see lies in a bucket of its own.
var jobs = table[app.Job]{
	bucket: bucketJobs,
	read:   readJob,
	indexes: []index[app.Job]{
		{indexJobsList, jobList},
		{indexJobsBatch, jobBatch},
		{indexJobsName, jobName},
		{indexJobsFile, jobFile},
		{indexJobsSource, jobSource},
		{indexJobsFinished, jobFinished},
		{indexJobsQueue, jobQueue},
		{indexJobsClaimed, jobClaimed},
	},
	sums: []sum[app.Job]{
		{sumJobsTotal, jobTotal},
		{sumJobsUsage, jobUsage},
		{sumStatusesOrganization, statusesOfOrganization},
		{sumStatusesUser, statusesOfUser},
	},
}

const (
	indexJobsList    = "jobs.list"
	indexJobsBatch   = "jobs.batch"
	indexJobsName    = "jobs.name"
	indexJobsFile    = "jobs.file"
	indexJobsQueue   = "jobs.queue"
	indexJobsClaimed = "jobs.claimed"
)

// jobList: each combination of the filters of a listing, id; no subjobs.
func jobList(id app.IDBytes, j *app.Job) []entry {
	if j.Private.Batch != "" {
		return nil
	}
	return listEntries(id, j.Organization, jobFilters(j.Email, j.Type, j.Status)...)
}

func jobFilters(email, typ string, status app.Status) []string {
	letter := ""
	if status != "" {
		letter = string(statusLetter(status))
	}
	return []string{email, typ, letter}
}

// jobBatch: batch, status or any, id; only subjobs.
func jobBatch(id app.IDBytes, j *app.Job) []entry {
	if j.Private.Batch == "" {
		return nil
	}
	batch := idOf(j.Private.Batch)
	return []entry{
		{key: batchKey(batch, "").id(id)},
		{key: batchKey(batch, j.Status).id(id)},
	}
}

func batchKey(batch app.IDBytes, status app.Status) key {
	return make(key, 0, 2*app.IDSize+1).id(batch).letter(statusLetter(status))
}

// jobName: organization, name, id.
func jobName(id app.IDBytes, j *app.Job) []entry {
	return []entry{{key: nameKey(j.Organization, j.Name).id(id)}}
}

func nameKey(organization, name string) key {
	return make(key, 0, 128).text(organization).text(name)
}

// jobFile: upload or other job that is read, id; only unfinished jobs.
func jobFile(id app.IDBytes, j *app.Job) []entry {
	if j.Status.Finished() {
		return nil
	}
	return jobSource(id, j)
}

// jobSource: upload or other job that was read, id; also finished jobs.
func jobSource(id app.IDBytes, j *app.Job) []entry {
	var all []entry
	for _, src := range j.Private.References {
		e := entry{key: key{}.id(sourceID(src)).id(id)}
		if !holds(all, e) {
			all = append(all, e)
		}
	}
	return all
}

func sourceID(src app.Reference) app.IDBytes {
	if src.Upload != "" {
		return idOf(src.Upload)
	}
	return idOf(src.Job)
}

// jobQueue: executor, priority, organization, user, id, with what the job
// needs; only those that may be claimed.
func jobQueue(id app.IDBytes, j *app.Job) []entry {
	if j.Status != app.Queued || j.Private.Claimed || j.IsBatch() {
		return nil
	}
	k := make(key, 0, 128).text(j.Executor).priority(j.Priority).text(j.Organization).text(j.Email).id(id)
	return []entry{{key: k, value: appendResources(nil, j.Private.Needs)}}
}

func appendResources(b []byte, r placement.Resources) []byte {
	b = binary.AppendVarint(b, int64(r.CPUs))
	b = binary.AppendVarint(b, r.MemoryBytes)
	return binary.AppendVarint(b, int64(r.GPUs))
}

func cutResources(b []byte) (placement.Resources, error) {
	var numbers [3]int64
	for i := range numbers {
		v, n := binary.Varint(b)
		if n <= 0 {
			return placement.Resources{}, errKey
		}
		numbers[i], b = v, b[n:]
	}
	return placement.Resources{CPUs: int(numbers[0]), MemoryBytes: numbers[1], GPUs: int(numbers[2])}, nil
}

// jobClaimed: id, with the number of the attempt and whether its end is asked
// for; only claimed jobs.
func jobClaimed(id app.IDBytes, j *app.Job) []entry {
	if !j.Private.Claimed || j.Status.Finished() {
		return nil
	}
	var stop uint64
	if j.Private.Stop {
		stop = 1
	}
	return []entry{{key: key{}.id(id), value: binary.AppendUvarint(binary.AppendUvarint(nil, uint64(j.Attempts)), stop)}}
}

// Claims tells of the claimed jobs, oldest first. It reads the index alone.
func (t *tx) Claims() iter.Seq2[app.Claimed, error] {
	return func(yield func(app.Claimed, error) bool) {
		for k, value := range t.ascend(indexJobsClaimed, nil) {
			c, err := readClaimed(k, value)
			if err != nil {
				err = fmt.Errorf("%s: %w", indexJobsClaimed, err)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

func readClaimed(k key, value []byte) (app.Claimed, error) {
	id, err := k.lastID()
	if err != nil {
		return app.Claimed{}, err
	}
	attempt, n := binary.Uvarint(value)
	if n <= 0 {
		return app.Claimed{}, errKey
	}
	stop, m := binary.Uvarint(value[n:])
	if m <= 0 || stop > 1 {
		return app.Claimed{}, errKey
	}
	return app.Claimed{Job: app.JobID(id.String()), Attempt: int(attempt), Stop: stop == 1}, nil
}

func readJob(t *tx, id app.IDBytes) (*app.Job, error) {
	shown := t.bucket(bucketJobs).Get(id[:])
	if shown == nil {
		return nil, noJob(id.String())
	}
	var j app.Job
	if err := json.Unmarshal(shown, &j); err != nil {
		return nil, fmt.Errorf("read job %s: %w", id, err)
	}
	if err := j.DecodePrivate(t.bucket(bucketJobsPrivate).Get(id[:])); err != nil {
		return nil, fmt.Errorf("read what is private of job %s: %w", id, err)
	}
	return &j, nil
}

func noJob(id string) error { return fault.Errorf(fault.NotFound, "there is no job %s", id) }

// Job gives a job with what is private.
func (t *tx) Job(id app.JobID) (*app.Job, error) {
	key, err := app.ParseID(string(id))
	if err != nil {
		return nil, noJob(string(id))
	}
	return readJob(t, key)
}

// JobNamed gives the job or subjob of that name.
func (t *tx) JobNamed(organization, name string) (*app.Job, error) {
	prefix := nameKey(organization, name)
	for k := range t.descend(indexJobsName, prefix, prefix.end()) {
		id, err := k.lastID()
		if err != nil {
			return nil, err
		}
		return readJob(t, id)
	}
	return nil, fault.Errorf(fault.NotFound, "there is no job %q", name)
}

// JobJSON gives the record as clients see it.
func (t *tx) JobJSON(id app.JobID) (json.RawMessage, error) {
	key, err := app.ParseID(string(id))
	if err != nil {
		return nil, noJob(string(id))
	}
	shown := t.bucket(bucketJobs).Get(key[:])
	if shown == nil {
		return nil, noJob(string(id))
	}
	return bytes.Clone(shown), nil
}

// PutJob inserts or replaces a job.
func (t *tx) PutJob(j *app.Job) error {
	e, err := j.Encoded()
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	return t.PutEncoded(e)
}

// PutEncoded is PutJob without the encoding.
func (t *tx) PutEncoded(e app.EncodedJob) error {
	id, err := checkJob(e.Job)
	if err != nil {
		return fmt.Errorf("put job %q: %w", e.Job.ID, err)
	}
	old, err := present(readJob(t, id))
	if err != nil {
		return err
	}
	if err := t.replace(bucketJobs, id[:], e.Shown); err != nil {
		return err
	}
	if err := t.replace(bucketJobsPrivate, id[:], e.Private); err != nil {
		return err
	}
	t.raise(id)
	return jobs.reindex(t, id, old, e.Job)
}

// checkJob refuses what could be stored but not found again.
func checkJob(j *app.Job) (app.IDBytes, error) {
	id, err := app.ParseID(string(j.ID))
	if err != nil {
		return id, err
	}
	if !j.Status.Valid() {
		return id, fmt.Errorf("%q is no status", j.Status)
	}
	if j.Private.Batch != "" {
		if _, err := app.ParseID(string(j.Private.Batch)); err != nil {
			return id, fmt.Errorf("batch %q: %w", j.Private.Batch, err)
		}
	}
	for _, src := range j.Private.References {
		if sourceID(src) == (app.IDBytes{}) {
			return id, fmt.Errorf("source of %q: neither an upload nor a job", src.Setting)
		}
	}
	return id, nil
}

// DeleteJob removes a job; its ID is never used again.
func (t *tx) DeleteJob(id app.JobID) error {
	old, err := t.Job(id)
	if err != nil {
		return err
	}
	key := idOf(id)
	if err := t.delete(bucketJobs, key[:]); err != nil {
		return err
	}
	if err := t.delete(bucketJobsPrivate, key[:]); err != nil {
		return err
	}
	return jobs.reindex(t, key, old, nil)
}

// Subjobs walks a batch by row, since rows get their IDs in their order.
func (t *tx) Subjobs(batch app.JobID, status app.Status) iter.Seq2[*app.Job, error] {
	id, err := app.ParseID(string(batch))
	if err != nil {
		return func(func(*app.Job, error) bool) {} // a batch without an ID has no rows
	}
	return t.eachJob(indexJobsBatch, batchKey(id, status))
}

// Active walks the claimed jobs, oldest first.
func (t *tx) Active() iter.Seq2[*app.Job, error] {
	return t.eachJob(indexJobsClaimed, nil)
}

func (t *tx) eachJob(index string, prefix key) iter.Seq2[*app.Job, error] {
	return func(yield func(*app.Job, error) bool) {
		for k := range t.ascend(index, prefix) {
			id, err := k.lastID()
			if err != nil {
				yield(nil, err)
				return
			}
			j, err := readJob(t, id)
			if !yield(j, err) || err != nil {
				return
			}
		}
	}
}

// NeededBy gives an unfinished job that reads an upload or result.
func (t *tx) NeededBy(source string) (app.JobID, error) {
	if src, err := app.ParseID(source); err == nil {
		for k := range t.ascend(indexJobsFile, key{}.id(src)) {
			id, err := k.lastID()
			return app.JobID(id.String()), err
		}
	}
	return "", fault.Errorf(fault.NotFound, "no unfinished job needs %s", source)
}

// Queue visits the jobs that wait for an executor. It reads the index alone.
func (t *tx) Queue(executor string, visit func(app.Waiting) app.Visit) error {
	prefix := make(key, 0, 64).text(executor)
	w := t.walk(indexJobsQueue)
	for w.seek(prefix); w.key != nil && bytes.HasPrefix(w.key, prefix); {
		waiting, err := readWaiting(w.key, w.key[len(prefix):], w.value)
		if err != nil {
			return fmt.Errorf("%s: %w", indexJobsQueue, err)
		}
		switch visit(waiting) {
		case app.NextJob:
			w.next()
		case app.NextUser:
			w.seek(w.key[:len(w.key)-app.IDSize].end())
		default:
			return nil
		}
	}
	return nil
}

func readWaiting(whole, k key, value []byte) (w app.Waiting, err error) {
	if w.Priority, k, err = k.cutPriority(); err != nil {
		return w, err
	}
	if w.Organization, k, err = k.cutText(); err != nil {
		return w, err
	}
	if w.Email, _, err = k.cutText(); err != nil {
		return w, err
	}
	id, err := whole.lastID()
	if err != nil {
		return w, err
	}
	w.ID = app.JobID(id.String())
	w.Needs, err = cutResources(value)
	return w, err
}
