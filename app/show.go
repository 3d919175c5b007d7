package app

import (
	"encoding/json"
	"math"
	"strings"

	"molrun/app/base/strictjson"
	"molrun/app/job/eta"
)

// Record is a job's JSON as shown to clients, including live state.
type Record = json.RawMessage

// WithLiveState adds a job's live state to its stored record.
func (s *Jobs) WithLiveState(j StoredJob) Record {
	s.live.mu.Lock()
	progress, runs := s.live.progress[j.ID]
	s.live.mu.Unlock()
	switch h := headOf(j.JSON); h.status {
	case Running:
		shown := j.JSON
		if runs {
			shown = strictjson.Append(shown, "progress", progress)
		}
		return s.showLeft(j.ID, shown)
	case Queued:
		return s.showWaiting(j, h)
	}
	return j.JSON
}

// showLeft adds the remaining run time to the record of a running job, if known.
func (s *Jobs) showLeft(id JobID, shown Record) Record {
	left, basis, _ := s.live.running.Left(string(id), s.now())
	if basis == "" {
		return shown
	}
	return strictjson.Append(strictjson.Append(shown, "etaSeconds", int64(math.Round(left))), "etaBasis", basis)
}

// showWaiting adds the queue position of a queued job to its record and, unless the
// record already has a reason, why it waits.
func (s *Jobs) showWaiting(j StoredJob, h head) Record {
	why, place, inQueue := s.live.waiting(j.ID, s.now())
	if why.Text == "" && !inQueue && h.executor != "" && !s.router.Has(h.executor) {
		why.Text = "waiting: the executor " + h.executor + " is no longer configured; ask an administrator, or cancel the job and submit it again"
	}
	if strings.HasPrefix(h.reason, waitsForJob) {
		place.BlockedBy = eta.Dependency // it is not in the queue
	}
	shown := j.JSON
	if why.Text != "" && h.reason == "" {
		shown = strictjson.Append(shown, "statusReason", why.Text)
	}
	if place != (eta.Queue{}) {
		shown = strictjson.Append(shown, "queue", place)
	}
	return shown
}

// waitsForJob begins the statusReason of a job that waits for others.
const waitsForJob = "waiting for job "

// head is the part of a record that determines a job's live state.
type head struct {
	status   Status
	reason   string // of a queued job, JSON-encoded
	executor string // of a queued job; "" if the rows of a batch have several
}

// headOf reads the head of a stored record and skips members that can be large.
func headOf(record []byte) (h head) {
	strictjson.Peek(record, func(name, value []byte) bool {
		switch string(name) {
		case "status":
			for _, s := range Statuses {
				if string(value[1:len(value)-1]) == string(s) {
					h.status = s // the constant avoids copying value
				}
			}
			return h.status == Queued
		case "statusReason":
			h.reason = string(value[1 : len(value)-1])
		case "executor":
			h.executor = string(value[1 : len(value)-1])
		case "settings", "organization": // ends at the settings or, in a batch, which has none, at the organization
			return false
		}
		return true
	})
	return h
}
