package app

import (
	"bytes"
	"encoding/json"
	"maps"
	"sync"

	"molrun/app/strictjson"
)

// liveStates are the volatile states of jobs, kept in memory only: the progress
// of running ones, and why queued ones wait.
type liveStates struct {
	mu       sync.Mutex
	progress map[JobID]Progress
	reasons  map[JobID]string
}

func (l *liveStates) setProgress(id JobID, p *Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p == nil {
		delete(l.progress, id)
		return
	}
	if l.progress == nil {
		l.progress = map[JobID]Progress{}
	}
	l.progress[id] = *p
}

func (l *liveStates) setReasons(reasons map[JobID]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = maps.Clone(reasons)
}

// Record is a job's JSON as clients see it now, live state included.
type Record = json.RawMessage

// Show adds a job's live state to its stored record.
func (s *Jobs) Show(j StoredJob) Record {
	s.live.mu.Lock()
	progress, runs := s.live.progress[j.ID]
	reason, waits := s.live.reasons[j.ID]
	s.live.mu.Unlock()
	switch status, hasReason := statusOf(j.JSON); {
	case runs && status == Running:
		return strictjson.Append(j.JSON, "progress", progress)
	case status != Queued || hasReason:
	case waits:
		return strictjson.Append(j.JSON, "statusReason", reason)
	default:
		if e := executorOf(j.JSON); e != "" && !s.router.Has(e) {
			return strictjson.Append(j.JSON, "statusReason", "waiting: the executor "+e+" is no longer configured here; ask an administrator, or cancel the job and submit it again")
		}
	}
	return j.JSON
}

// statusOf reads the status out of a stored record, and whether it is followed by
// a statusReason. It goes by position: both members stand before everything that
// users write but names, whose quotes are escaped.
func statusOf(record []byte) (status Status, hasReason bool) {
	_, rest, _ := bytes.Cut(record, []byte(`"status":"`))
	text, rest, _ := bytes.Cut(rest, []byte(`"`))
	hasReason = bytes.HasPrefix(rest, []byte(`,"statusReason":`))
	for _, s := range Statuses {
		if string(text) == string(s) {
			return s, hasReason // without a copy
		}
	}
	return Status(text), hasReason
}

// executorOf reads the executor out of the record of a queued job, "" if the rows
// of a batch have several. Behind the last jobEmail, settings and inputs are over,
// so that no member of theirs can be taken for the record's own.
func executorOf(record []byte) string {
	_, rest, _ := bytes.Cut(record[max(0, bytes.LastIndex(record, []byte(`"jobEmail":"`))):], []byte(`"executor":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// changes lets callers wait for the next change of a job.
type changes struct {
	mu      sync.Mutex
	waiting map[JobID]*waiters
}

type waiters struct {
	changed chan struct{} // closed by notify
	count   int
}

// watch returns a channel that is closed at the job's next change. Call release
// when no longer interested.
func (c *changes) watch(id JobID) (changed <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[JobID]*waiters{}
	}
	w := c.waiting[id]
	if w == nil {
		w = &waiters{changed: make(chan struct{})}
		c.waiting[id] = w
	}
	w.count++
	return w.changed, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.count--; w.count == 0 && c.waiting[id] == w {
			delete(c.waiting, id)
		}
	}
}

// watched lists the jobs whose changes somebody waits for.
func (c *changes) watched() []JobID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]JobID, 0, len(c.waiting))
	for id := range c.waiting {
		ids = append(ids, id)
	}
	return ids
}

// notify wakes those who wait for a change of these jobs.
func (c *changes) notify(ids ...JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if w := c.waiting[id]; w != nil {
			close(w.changed)
			delete(c.waiting, id)
		}
	}
}
