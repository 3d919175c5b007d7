package app

import (
	"bytes"
	"encoding/json"
	"math"

	"molrun/app/base/strictjson"
	"molrun/app/job/eta"
)

// Record is a job's JSON as clients see it now, live state included.
type Record = json.RawMessage

// Show adds a job's live state to its stored record.
func (s *Jobs) Show(j StoredJob) Record {
	s.live.mu.Lock()
	progress, runs := s.live.progress[j.ID]
	s.live.mu.Unlock()
	switch status, hasReason := statusOf(j.JSON); {
	case status == Running:
		shown := j.JSON
		if runs {
			shown = strictjson.Append(shown, "progress", progress)
		}
		return s.showLeft(j.ID, shown)
	case status == Queued:
		return s.showWaiting(j, hasReason)
	}
	return j.JSON
}

// showLeft adds to the record of a running job how long it still runs, if that is known.
func (s *Jobs) showLeft(id JobID, shown Record) Record {
	left, basis, _ := s.live.running.Left(string(id), s.now())
	if basis == "" {
		return shown
	}
	return strictjson.Append(strictjson.Append(shown, "etaSeconds", int64(math.Round(left))), "etaBasis", basis)
}

// showWaiting adds to the record of a queued job why it waits, unless the record says
// that, and its place in the queue.
func (s *Jobs) showWaiting(j StoredJob, hasReason bool) Record {
	why, place, inQueue := s.live.waiting(j.ID, s.now())
	if why.Text != "" || inQueue {
		// known, or its executor is there
	} else if e := executorOf(j.JSON); e != "" && !s.router.Has(e) {
		why.Text = "waiting: the executor " + e + " is no longer configured here; ask an administrator, or cancel the job and submit it again"
	}
	if hasReason {
		if _, reason, _ := bytes.Cut(j.JSON, []byte(`"statusReason":"`)); bytes.HasPrefix(reason, []byte(waitsForJob)) {
			place.BlockedBy = eta.Dependency // it stands in no queue
		}
	}
	shown := j.JSON
	if why.Text != "" && !hasReason {
		shown = strictjson.Append(shown, "statusReason", why.Text)
	}
	if place != (eta.Queue{}) {
		shown = strictjson.Append(shown, "queue", place)
	}
	return shown
}

// waitsForJob begins the statusReason of a job that waits for others.
const waitsForJob = "waiting for job "

// statusOf reads the status out of a stored record, and whether it is followed by
// a statusReason. It goes by position: both members stand before everything that
// users write but names, whose quotes are escaped.
func statusOf(record []byte) (status Status, hasReason bool) {
	_, rest, _ := bytes.Cut(record, []byte(`,"status":"`)) // commas are rarer than quotes, so bytes.Cut is faster
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
