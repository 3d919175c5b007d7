package storage

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/unit"
)

// What an organization uses is summed up twice: in all, for quotas, and by
// user, algorithm and day, for reports.
const (
	sumJobsTotal    = "jobs.total"
	sumJobsUsage    = "jobs.usage"
	sumUploadsTotal = "uploads.total"
	sumUploadsUsage = "uploads.usage"
)

// jobTotal: organization. A batch adds nothing itself, its rows do.
func jobTotal(j *app.Job) (key, app.Usage) {
	if j.IsBatch() {
		return nil, app.Usage{}
	}
	return make(key, 0, 32).text(j.Organization), j.Usage()
}

// jobUsage: organization, user, algorithm, day of the end, or of the
// submission of a job that has not ended.
func jobUsage(j *app.Job) (key, app.Usage) {
	if j.IsBatch() {
		return nil, app.Usage{}
	}
	at := j.CompletedAt
	if at.IsZero() {
		at = j.CreatedAt
	}
	return make(key, 0, 128).text(j.Organization).text(j.Email).text(j.Type).time(dayOf(at)), j.Usage()
}

// uploadTotal: organization.
func uploadTotal(u *app.Upload) (key, app.Usage) {
	return make(key, 0, 32).text(u.Organization), u.Usage()
}

// uploadUsage: organization, user, "", day of the upload.
func uploadUsage(u *app.Upload) (key, app.Usage) {
	return make(key, 0, 128).text(u.Organization).text(u.Email).text("").time(dayOf(u.CreatedAt)), u.Usage()
}

func dayOf(t unit.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Stored gives what an organization uses in all.
func (t *tx) Stored(organization string) (app.Usage, error) {
	k := key{}.text(organization)
	ofJobs, err := t.sumAt(sumJobsTotal, k)
	if err != nil {
		return app.Usage{}, err
	}
	ofUploads, err := t.sumAt(sumUploadsTotal, k)
	return ofJobs.Plus(ofUploads), err
}

// Organizations lists those that have jobs or uploads, sorted. A batch whose
// rows were deleted adds nothing to the sums, and yet it may have to go.
func (t *tx) Organizations() ([]string, error) {
	names, err := t.organizationsOfFinished()
	if err != nil {
		return nil, err
	}
	for _, bucket := range []string{sumJobsTotal, sumUploadsTotal} {
		for k := range t.ascend(bucket, nil) {
			name, _, err := k.cutText()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", bucket, err)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// organizationsOfFinished lists those that have a job that Finished walks.
func (t *tx) organizationsOfFinished() (names []string, err error) {
	scope := key{}.letter('o')
	w := t.walk(indexJobsFinished)
	for w.seek(scope); w.key != nil && bytes.HasPrefix(w.key, scope); {
		name, _, err := w.key[len(scope):].cutText()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", indexJobsFinished, err)
		}
		names = append(names, name)
		w.seek(key{}.letter('o').text(name).end())
	}
	return names, nil
}

// Usage walks what is used by whom and for what, jobs first.
func (t *tx) Usage() iter.Seq2[app.UsageShare, error] {
	return func(yield func(app.UsageShare, error) bool) {
		for _, bucket := range []string{sumJobsUsage, sumUploadsUsage} {
			for k, value := range t.ascend(bucket, nil) {
				share, err := readShare(k, value)
				if err != nil {
					err = fmt.Errorf("%s: %w", bucket, err)
				}
				if !yield(share, err) || err != nil {
					return
				}
			}
		}
	}
}

func readShare(k key, value []byte) (s app.UsageShare, err error) {
	for _, part := range []*string{&s.Organization, &s.Email, &s.Type} {
		if *part, k, err = k.cutText(); err != nil {
			return s, err
		}
	}
	if s.Day, _, err = k.cutTime(); err != nil {
		return s, err
	}
	s.Usage, err = cutUsage(value)
	return s, err
}

const (
	indexJobsSource   = "jobs.source"
	indexJobsFinished = "jobs.finished"
)

// jobFinished: scope, organization, user within the scope of users, status,
// time of the end, id; only what retention may delete.
func jobFinished(id app.IDBytes, j *app.Job) []entry {
	if !j.Status.Finished() || j.Pinned || j.Private.Batch != "" {
		return nil
	}
	all := []entry{{key: finishedKey(j.Organization, "", j.Status).time(j.CompletedAt.Time).id(id)}}
	if j.Email != "" {
		all = append(all, entry{key: finishedKey(j.Organization, j.Email, j.Status).time(j.CompletedAt.Time).id(id)})
	}
	return all
}

// finishedKey gives the prefix of the finished jobs of an organization, or of
// one user.
func finishedKey(organization, email string, status app.Status) key {
	k := make(key, 0, 128)
	if email == "" {
		return k.letter('o').text(organization).letter(statusLetter(status))
	}
	return k.letter('u').text(organization).text(email).letter(statusLetter(status))
}

// Finished walks finished jobs from after on, the first that ended first.
func (t *tx) Finished(organization string, status app.Status, after app.Ended) iter.Seq2[app.Ended, error] {
	prefix := finishedKey(organization, "", status)
	return func(yield func(app.Ended, error) bool) {
		w := t.walk(indexJobsFinished)
		for w.seek(endedKey(prefix, after)); w.key != nil && bytes.HasPrefix(w.key, prefix); w.next() {
			e, err := readEnded(w.key[len(prefix):])
			if err == nil && e.Compare(after) == 0 {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func endedKey(prefix key, after app.Ended) key {
	if after.ID == "" {
		return prefix
	}
	return key(bytes.Clone(prefix)).time(after.At).id(idOf(after.ID))
}

func readEnded(k key) (e app.Ended, err error) {
	if e.At, k, err = k.cutTime(); err != nil {
		return e, err
	}
	id, err := k.lastID()
	e.ID = app.JobID(id.String())
	return e, err
}

// Newest gives the limit jobs of those that Finished walks which ended last,
// the last first; email "" is all users.
func (t *tx) Newest(organization, email string, limit int) ([]app.Ended, error) {
	var all []app.Ended
	for _, status := range []app.Status{app.Completed, app.Failed} {
		prefix, n := finishedKey(organization, email, status), 0
		for k := range t.descend(indexJobsFinished, prefix, prefix.end()) {
			if n++; n > limit {
				break
			}
			e, err := readEnded(k[len(prefix):])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", indexJobsFinished, err)
			}
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b app.Ended) int { return -a.Compare(b) })
	return all[:min(limit, len(all))], nil
}

// Readers walks the jobs, finished ones too, that read an upload or result.
func (t *tx) Readers(source string) iter.Seq2[app.JobID, error] {
	return func(yield func(app.JobID, error) bool) {
		src, err := app.ParseID(source)
		if err != nil {
			return // nobody reads what has no ID
		}
		for k := range t.ascend(indexJobsSource, key{}.id(src)) {
			id, err := k.lastID()
			if !yield(app.JobID(id.String()), err) || err != nil {
				return
			}
		}
	}
}

// OldestUploads walks the uploads that are newer than after, oldest first.
func (t *tx) OldestUploads(after app.UploadID) iter.Seq2[*app.Upload, error] {
	return func(yield func(*app.Upload, error) bool) {
		from := idOf(after)
		w := t.walk(bucketUploads)
		for w.seek(from[:]); w.key != nil; w.next() {
			id, err := w.key.lastID()
			if err == nil && id == from {
				continue
			}
			var u *app.Upload
			if err == nil {
				u, err = readUpload(t, id)
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// metaStamp is when retention last ran.
const metaStamp = "retained"

// Stamp gives the time that PutStamp stored last, zero if none.
func (t *tx) Stamp() (time.Time, error) {
	text := t.bucket(bucketMeta).Get([]byte(metaStamp))
	if text == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return at, fmt.Errorf("read when retention last ran: %w", err)
	}
	return at, nil
}

// PutStamp stores when retention runs.
func (t *tx) PutStamp(at time.Time) error {
	return t.replace(bucketMeta, []byte(metaStamp), []byte(at.UTC().Format(time.RFC3339Nano)))
}
