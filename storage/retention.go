package storage

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// Finished iterates over finished jobs after a given one, in the order in which they
// finished.
func (t tx) Finished(organization string, status app.Status, after app.Ended) iter.Seq2[app.Ended, error] {
	prefix := finishedKey(organization, "", status, false)
	from := prefix
	if after.ID != "" {
		from = kv.Key(bytes.Clone(prefix)).Time(after.At).ID(idOf(after.ID))
	}
	return func(yield func(app.Ended, error) bool) {
		w := t.Walk(indexJobsFinished)
		for w.Seek(from); w.Key != nil && bytes.HasPrefix(w.Key, prefix); w.Next() {
			e, err := readEnded(w.Key[len(prefix):])
			if err == nil && e.Compare(after) == 0 {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Newest returns up to limit jobs of a user, the most recently finished first. If email
// is "", it returns those of all users.
func (t tx) Newest(organization, email string, limit int) ([]app.Ended, error) {
	var all []app.Ended
	for _, status := range []app.Status{app.Completed, app.Failed} {
		prefix, n := finishedKey(organization, email, status, false), 0
		for k := range t.Descend(indexJobsFinished, prefix, prefix.End()) {
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

const indexJobsFinished = "jobs.finished"

// jobFinished indexes finished jobs other than subjobs by scope, organization, user (in
// the scope of users), status and whether pinned, completion time and id.
func jobFinished(id sortid.ID, j *app.Job) []kv.Entry {
	if !j.Status.Finished() || j.Private.Batch != "" {
		return nil
	}
	all := []kv.Entry{{Key: finishedKey(j.Organization, "", j.Status, j.Pinned).Time(j.CompletedAt.Time).ID(id)}}
	if j.Email != "" {
		all = append(all, kv.Entry{Key: finishedKey(j.Organization, j.Email, j.Status, j.Pinned).Time(j.CompletedAt.Time).ID(id)})
	}
	return all
}

// Scopes of jobs.finished.
const (
	scopeOrganization = 'o'
	scopeUser         = 'u'
)

// finishedKey returns the prefix of the finished jobs of an organization, or of one user.
// Pinned jobs have a separate prefix, so that retention need not skip them.
func finishedKey(organization, email string, status app.Status, pinned bool) kv.Key {
	letter := statusLetter(status)
	if pinned {
		letter += 'a' - 'A'
	}
	k := make(kv.Key, 0, 128)
	if email == "" {
		return k.Letter(scopeOrganization).Text(organization).Letter(letter)
	}
	return k.Letter(scopeUser).Text(organization).Text(email).Letter(letter)
}

// readEnded decodes the part of a key after the prefix.
func readEnded(k kv.Key) (e app.Ended, err error) {
	if e.At, k, err = k.CutTime(); err != nil {
		return e, err
	}
	e.ID, err = jobAt(k)
	return e, err
}

// metaStamp is the meta key of the time when retention last ran.
const metaStamp = "retained"

// Stamp returns the time stored by PutStamp, or zero if there is none.
func (t tx) Stamp() (time.Time, error) {
	text := t.Bucket(kv.Meta).Get([]byte(metaStamp))
	if text == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return at, fmt.Errorf("read when retention last ran: %w", err)
	}
	return at, nil
}

// PutStamp stores the time at which retention runs.
func (t tx) PutStamp(at time.Time) error {
	return t.Replace(kv.Meta, []byte(metaStamp), []byte(at.UTC().Format(time.RFC3339Nano)))
}
