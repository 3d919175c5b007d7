package simulation

import (
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/apikey"
)

// waitFor is how long users wait for a change of a job.
const waitFor = 30 * time.Second

// wait has a user request a job's record and wait for a change.
func (s *simulation) wait() {
	s.up()
	finished := s.rng.IntN(6) == 0 // the response is then immediate
	e := s.some(func(e *entry) bool { return e.Status.Finished() == finished })
	if s.process == nil || e == nil {
		return
	}
	by := app.Caller{Organization: e.Organization, Email: e.Email, Rights: apikey.Member.Rights()}
	s.send(&request{label: label{verb: "wait"}, by: by, name: e.Name, before: e.Status})
}

// judgeWaiting reports users who are still waiting for a change that has happened,
// although no call is waiting.
func (s *simulation) judgeWaiting() {
	for _, r := range s.inOrder() {
		if r.label.verb != "wait" {
			continue
		}
		if e := s.ledger.named(r.by.Organization, r.name); e == nil || e.Status != r.before {
			s.faultf("%s: still waiting, but the job has changed", r.label)
		}
	}
}

// judgeWait checks that a response was not sent too early.
func (s *simulation) judgeWait(r *request) {
	over := r.have.code == fault.NotFound || r.have.status != r.before || r.have.status.Finished()
	if !over && time.Since(r.sent) < waitFor {
		s.faultf("%s: answered %s after %v, but nothing changed", r.label, r.have.status, time.Since(r.sent))
	}
}
