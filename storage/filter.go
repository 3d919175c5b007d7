package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/naming"
	"molrun/app/base/sortid"
	"molrun/app/base/strictjson"
	"molrun/storage/kv"
)

// JobIDs returns the IDs of up to limit jobs, as Jobs does.
func (t tx) JobIDs(f app.JobFilter, after app.Position, limit int) ([]app.JobID, app.Position, error) {
	found, next, err := t.findJobs(f, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("list jobs: %w", err)
	}
	ids := make([]app.JobID, len(found))
	for i, end := range found {
		id, _ := end.LastID() // findJobs has checked it
		ids[i] = app.JobID(id.String())
	}
	return ids, next, nil
}

// findJobs returns the key suffixes of up to limit jobs and the position at which to
// continue, or "" if there are no more.
func (t tx) findJobs(f app.JobFilter, after app.Position, limit int) (found []kv.Key, next app.Position, err error) {
	found = make([]kv.Key, 0, min(limit, app.MaxPage))
	last, more, err := t.scanJobs(f, after, limit, func(end kv.Key) { found = append(found, end) })
	if !more || err != nil {
		return found, "", err
	}
	return found, app.Position(last), nil
}

// CountJobs counts the jobs that match a filter, up to a maximum, and reports whether
// there might be more.
func (t tx) CountJobs(f app.JobFilter, most int) (n int, more bool, err error) {
	if _, more, err = t.scanJobs(f, "", most, func(kv.Key) { n++ }); err != nil {
		return 0, false, fmt.Errorf("count jobs: %w", err)
	}
	return n, more, nil
}

// maxScan limits how many non-matching candidates are tested for one page.
const maxScan = 5000

// scanJobs visits the key suffixes of the jobs after a position, up to a maximum number.
// It returns the last suffix processed and whether there might be more jobs after it.
func (t tx) scanJobs(f app.JobFilter, after app.Position, most int, visit func(end kv.Key)) (last kv.Key, more bool, err error) {
	c := t.candidates(f)
	walk := t.walkCandidates(c, boundsOf(f, after), f.Ascending)
	if f.Metric != "" {
		if walk, err = byMetric(t.Tx, f, t.walkCandidates(c, boundsOf(f, ""), true), after); err != nil {
			return nil, false, err
		}
	}
	found, scanned := 0, 0
	for end := range walk {
		id, err := end.LastID()
		if err != nil {
			return nil, false, err
		}
		match := true
		if c.test != nil {
			if scanned++; scanned > maxScan+most {
				return last, true, nil
			}
			if match, err = c.test(id); err != nil {
				return nil, false, err
			}
		}
		switch {
		case !match:
		case found == most:
			return last, true, nil
		default:
			found++
			visit(end)
		}
		last = end
	}
	return last, false, nil
}

// candidates is the set of jobs that a filter selects from. It consists of ranges of one
// index, each holding the keys with one prefix. All keys end with the same kind of
// suffix, either an ID or a time and an ID, and the listing is sorted by suffix.
type candidates struct {
	index    string
	prefixes []kv.Key
	test     func(sortid.ID) (bool, error) // nil selects all
}

// candidates returns the narrowest scan that includes all jobs of a filter.
func (t tx) candidates(f app.JobFilter) candidates {
	switch {
	case f.Name != "":
		return candidates{indexJobsName, []kv.Key{nameKey(f.Organization, f.Name)}, t.matches(f)}
	case f.Batch != "":
		batch, err := sortid.Parse(string(f.Batch))
		if err != nil {
			return candidates{index: indexJobsBatch}
		}
		return candidates{indexJobsBatch, keysOf(statusesOr(f, ""), func(s app.Status) kv.Key { return batchKey(batch, s) }), t.matches(f)}
	case f.ByCompletion:
		return t.finished(f)
	case len(f.Tags) > 0:
		c := candidates{index: indexJobsTag, prefixes: []kv.Key{tagKey(f.Organization, f.Email, f.Tags[0])}}
		if f.Type != "" || f.Search != "" || len(f.Statuses) > 0 || len(f.Tags) > 1 {
			c.test = t.indexed(f, f.Tags[1:])
		}
		return c
	}
	c := candidates{index: indexJobsList, prefixes: keysOf(statusesOr(f, anyStatus[:]...), func(s app.Status) kv.Key {
		return listPrefix(f.Organization, f.Email, f.Type).Letter(statusLetter(s))
	})}
	if f.Search != "" {
		c.test = t.containsText(f.Search)
	}
	return c
}

// anyStatus lists the most common statuses first, so that a search for any job ends
// early.
var anyStatus = [...]app.Status{app.Completed, app.Failed, app.Queued, app.Running}

// statusesOr returns the statuses of a filter, or the given default if it has none.
func statusesOr(f app.JobFilter, none ...app.Status) []app.Status {
	if len(f.Statuses) == 0 {
		return none
	}
	return f.Statuses
}

// finished returns the candidates of a filter in order of completion.
func (t tx) finished(f app.JobFilter) candidates {
	c := candidates{index: indexJobsFinished}
	for _, s := range []app.Status{app.Completed, app.Failed} {
		if len(f.Statuses) == 0 || slices.Contains(f.Statuses, s) {
			c.prefixes = append(c.prefixes, finishedKey(f.Organization, f.Email, s, false), finishedKey(f.Organization, f.Email, s, true))
		}
	}
	if f.Type != "" || f.Search != "" || len(f.Tags) > 0 {
		c.test = t.indexed(f, f.Tags)
	}
	return c
}

func keysOf[T any](values []T, key func(T) kv.Key) []kv.Key {
	keys := make([]kv.Key, len(values))
	for i, v := range values {
		keys[i] = key(v)
	}
	return keys
}

// indexed returns a test for jobs other than subjobs. It uses only indexes: reading a
// record costs far more.
func (t tx) indexed(f app.JobFilter, tags []app.Tag) func(sortid.ID) (bool, error) {
	c := t.candidates(app.JobFilter{Organization: f.Organization, Email: f.Email, Type: f.Type, Statuses: f.Statuses, Search: f.Search})
	listed, tagged := t.Walk(c.index), t.Walk(indexJobsTag)
	limited := f.Type != "" || len(f.Statuses) > 0
	return func(id sortid.ID) (bool, error) {
		// Index entries have empty values, and Get would not find one in the transaction
		// that puts it.
		in := func(w *kv.Walk, prefix kv.Key) bool {
			key := slices.Concat(prefix, id[:])
			w.Seek(key)
			return bytes.Equal(w.Key, key)
		}
		if limited && !slices.ContainsFunc(c.prefixes, func(prefix kv.Key) bool { return in(listed, prefix) }) {
			return false, nil
		}
		for _, tag := range tags {
			if !in(tagged, tagKey(f.Organization, f.Email, tag)) {
				return false, nil
			}
		}
		if c.test == nil {
			return true, nil
		}
		return c.test(id)
	}
}

// containsText returns a test of whether a job's search text contains text. Both are
// case-folded.
func (t tx) containsText(text string) func(sortid.ID) (bool, error) {
	texts, records, part := t.Bucket(indexJobsText), t.Walk(bucketJobs), []byte(text)
	return func(id sortid.ID) (bool, error) {
		if labeled := texts.Get(id[:]); labeled != nil {
			return bytes.Contains(labeled, part), nil
		}
		if records.Seek(id[:]); !bytes.Equal(records.Key, id[:]) {
			return false, noJob(id.String())
		}
		name, err := nameIn(records.Value)
		return strings.Contains(naming.Fold(name), text), err
	}
}

// nameIn extracts the job name from a record.
func nameIn(record []byte) (name string, err error) {
	err = errors.New("a record has no name")
	strictjson.Peek(record, func(member, value []byte) bool {
		if string(member) != "jobName" {
			return true
		}
		if err = nil; bytes.IndexByte(value, '\\') < 0 {
			name = string(value[1 : len(value)-1])
		} else {
			err = json.Unmarshal(value, &name)
		}
		return false
	})
	return name, err
}

// matches returns a test that reads the job's record. All rows of a batch come from one
// submission, so the fields they share are tested only once.
func (t tx) matches(f app.JobFilter) func(sortid.ID) (bool, error) {
	if f.Batch == "" || f.Name != "" || len(f.Tags) > 0 || f.Search != "" {
		return func(id sortid.ID) (bool, error) {
			j, err := readJob(t.Tx, id)
			return err == nil && f.Selects(j), err
		}
	}
	asked, match := false, false
	shared := f
	shared.Statuses = nil // statuses differ between rows; the index selects them
	return func(id sortid.ID) (bool, error) {
		if asked {
			return match, nil
		}
		j, err := readJob(t.Tx, id)
		asked, match = err == nil, err == nil && shared.Selects(j)
		return match, err
	}
}

// bounds limits key suffixes to low ≤ suffix < high; nil means no bound.
type bounds struct{ low, high kv.Key }

// boundsOf returns the bounds of a filter's times, starting after a position.
func boundsOf(f app.JobFilter, after app.Position) bounds {
	var e bounds
	if !f.From.IsZero() {
		e.low = suffixAt(f, f.From)
	}
	if !f.Until.IsZero() {
		e.high = suffixAt(f, f.Until)
	}
	switch {
	case after == "":
	case f.Ascending:
		if string(after) >= string(e.low) {
			e.low = kv.Key(after + "\x00") // all suffixes have the same length, so none lies in between
		}
	case e.high == nil || string(after) < string(e.high):
		e.high = kv.Key(after)
	}
	return e
}

// suffixAt returns the lowest key suffix at or after a time.
func suffixAt(f app.JobFilter, at time.Time) kv.Key {
	if millisecond := at.Truncate(time.Millisecond); millisecond.Before(at) {
		at = millisecond.Add(time.Millisecond)
	}
	if f.ByCompletion {
		return kv.Key{}.Time(at)
	}
	first := sortid.First(at)
	return first[:]
}

// walkCandidates yields the candidates' key suffixes within bounds, in order.
func (t tx) walkCandidates(c candidates, e bounds, ascending bool) iter.Seq[kv.Key] {
	open := t.descending
	if ascending {
		open = t.ascending
	}
	return func(yield func(kv.Key) bool) {
		cursors := make([]*cursor, 0, len(c.prefixes))
		for _, prefix := range c.prefixes {
			cursors = append(cursors, open(c.index, prefix, e))
		}
		for {
			l := nextOf(cursors, ascending)
			if l == nil || !yield(l.end) {
				return
			}
			l.next()
		}
	}
}

// cursor is a position among the keys with one prefix.
type cursor struct {
	end  kv.Key // key suffix, nil after the last key
	next func()
}

// nextOf returns the cursor with the first suffix, or nil if all are exhausted.
func nextOf(cursors []*cursor, ascending bool) (first *cursor) {
	for _, l := range cursors {
		if l.end != nil && (first == nil || bytes.Compare(l.end, first.end) < 0 == ascending) {
			first = l
		}
	}
	return first
}

func (t tx) descending(index string, prefix kv.Key, e bounds) *cursor {
	bound := prefix.End()
	if e.high != nil {
		bound = slices.Concat(prefix, e.high)
	}
	b, l := t.Back(index, prefix, bound), &cursor{}
	show := func() {
		if l.end = nil; b.Key != nil && bytes.Compare(b.Key[len(prefix):], e.low) >= 0 {
			l.end = b.Key[len(prefix):]
		}
	}
	l.next = func() { b.Prev(); show() }
	show()
	return l
}

func (t tx) ascending(index string, prefix kv.Key, e bounds) *cursor {
	w, l := t.Walk(index), &cursor{}
	show := func() {
		l.end = nil
		if end, in := bytes.CutPrefix(w.Key, prefix); in && (e.high == nil || bytes.Compare(end, e.high) < 0) {
			l.end = end
		}
	}
	l.next = func() { w.Next(); show() }
	w.Seek(slices.Concat(prefix, e.low))
	show()
	return l
}
