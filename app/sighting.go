package app

import (
	"bytes"
	"encoding/json"
	"maps"
	"sync"

	"molrun/app/strictjson"
)

// sightings are what the runner sees of jobs and nobody stores: the progress
// of running ones, why queued ones wait.
type sightings struct {
	mu       sync.Mutex
	progress map[JobID]Progress
	reasons  map[JobID]string
}

// ObserveProgress tells what a running program last said; nil forgets it.
func (s *Service) ObserveProgress(id JobID, p *Progress) {
	s.sightings.mu.Lock()
	defer s.sightings.mu.Unlock()
	if p == nil {
		delete(s.sightings.progress, id)
		return
	}
	if s.sightings.progress == nil {
		s.sightings.progress = map[JobID]Progress{}
	}
	s.sightings.progress[id] = *p
}

// ObserveReasons tells why jobs wait, and replaces all that was told before.
func (s *Service) ObserveReasons(reasons map[JobID]string) {
	s.sightings.mu.Lock()
	defer s.sightings.mu.Unlock()
	s.sightings.reasons = maps.Clone(reasons)
}

// show adds to a stored record what is seen of the job now.
func (s *Service) show(j StoredJob) json.RawMessage {
	s.sightings.mu.Lock()
	progress, runs := s.sightings.progress[j.ID]
	reason, waits := s.sightings.reasons[j.ID]
	s.sightings.mu.Unlock()
	switch status := statusOf(j.JSON); {
	case runs && status == Running:
		return strictjson.Splice(j.JSON, "progress", progress)
	case status != Queued || bytes.Contains(j.JSON, []byte(`"statusReason":`)):
	case waits:
		return strictjson.Splice(j.JSON, "statusReason", reason)
	default:
		if e := executorOf(j.JSON); e != "" && !s.router.Has(e) {
			return strictjson.Splice(j.JSON, "statusReason", "waiting: the executor "+e+" is no longer configured here; ask an administrator, or cancel the job and submit it again")
		}
	}
	return j.JSON
}

// executorOf reads where a job is to run out of the record of a queued one, ""
// where its rows run in several places. The member stands behind the last one
// that users have written.
func executorOf(record []byte) string {
	_, rest, _ := bytes.Cut(record[max(0, bytes.LastIndex(record, []byte(`"jobEmail":"`))):], []byte(`"executor":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// statusOf reads the state out of a stored record. The member stands before
// the settings, and quotes within names are escaped, so the first is the one.
func statusOf(record []byte) Status {
	_, rest, _ := bytes.Cut(record, []byte(`"status":"`))
	status, _, _ := bytes.Cut(rest, []byte(`"`))
	for _, s := range Statuses {
		if string(status) == string(s) {
			return s // without a copy
		}
	}
	return Status(status)
}
