package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"molrun/app"
	"molrun/app/fanout"
	"molrun/app/fault"
	"molrun/app/strictjson"
)

// request is one call of a user.
type request struct {
	label      label
	by         app.Caller
	name       string
	submission *submission // of submit and batch
	purge      *purge      // of prune and retain

	sent    time.Time
	sources map[string]app.JobID // jobs whose results a submission reads, by name
	awaited map[string]app.JobID // jobs that it starts after
	alone   bool                 // of cancel: what waits for the job waits on
	above   app.JobID            // every new job has a higher ID

	before app.Status // of wait: the job's status when the request was sent

	want     *answer // expected by the ledger when the store ran the request
	have     answer
	answered bool
}

// answer is the response to a user: a code, "" for success, and the job.
type answer struct {
	code    fault.Code
	created bool
	id      app.JobID
	status  app.Status // of wait
}

// send starts a request; collect checks its answer.
func (s *simulation) send(r *request) {
	s.sends++
	r.label.of = fmt.Sprintf("%s/%s by %s, request %d", r.by.Organization, r.name, r.by.Email, s.sends)
	if r.purge != nil {
		r.label.of = fmt.Sprintf("by the operator, request %d", s.sends)
	}
	r.sent, r.above, r.sources = time.Now(), s.ledger.highest, map[string]app.JobID{}
	r.awaited = map[string]app.JobID{}
	s.requests[r.label] = r
	if r.submission != nil {
		r.want = s.expectFromBody(r)
	}
	s.tracef("%s", r.label)
	p := s.process
	p.requests.Go(func() {
		have, err := r.call(called(context.Background(), r.label), p)
		if p.door.isDead() {
			return
		}
		if err != nil {
			have = answer{code: fault.CodeOf(err)}
		}
		s.answers <- func() { r.have, r.answered = have, true }
	})
}

func (r *request) call(ctx context.Context, p *process) (answer, error) {
	switch r.label.verb {
	case "submit", "batch":
		rec, created, err := r.submit(ctx, p)
		return answer{id: idOf(rec), created: created}, err
	case "cancel":
		cancel := p.Jobs.Cancel
		if r.alone {
			cancel = p.Jobs.CancelAlone
		}
		rec, err := cancel(ctx, r.by, r.name)
		return answer{id: idOf(rec)}, err
	case "retry":
		rec, err := p.Jobs.Retry(ctx, r.by, r.name)
		return answer{id: idOf(rec)}, err
	case "pin":
		rec, err := p.Jobs.Pin(ctx, r.by, r.name)
		return answer{id: idOf(rec)}, err
	case "unpin":
		rec, err := p.Jobs.Unpin(ctx, r.by, r.name)
		return answer{id: idOf(rec)}, err
	case "prune", "retain":
		return answer{}, r.purge.call(ctx, r.label.verb, p)
	case "wait":
		rec, err := p.Jobs.Get(ctx, r.by, r.name, waitFor)
		return answer{id: idOf(rec), status: recordOf(rec).Status}, err
	}
	return answer{}, p.Jobs.Delete(ctx, r.by, r.name)
}

func recordOf(rec app.Record) (j app.Job) {
	_ = json.Unmarshal(rec, &j) // an empty record gives an empty job
	return j
}

func idOf(rec app.Record) app.JobID { return recordOf(rec).ID }

func (r *request) submit(ctx context.Context, p *process) (app.Record, bool, error) {
	sub := r.submission
	body, err := strictjson.Parse([]byte(sub.body()))
	if err != nil {
		return nil, false, err
	}
	settings := body.Member("settings")
	if !sub.batch {
		return p.Jobs.Submit(ctx, r.by, app.Submission{
			Name: sub.name, Type: sub.typ, Settings: settings, Priority: sub.priority, Body: body,
			After: app.After{Names: sub.after, Any: sub.any},
		})
	}
	batch := app.BatchSubmission{
		Name: sub.name, Type: sub.typ, Rows: settings.Items, RowNames: sub.rowNames, Priority: sub.priority, Body: body,
		After: app.After{Names: sub.after, Any: sub.any},
	}
	if sub.table {
		request := fanout.Sent(sub.tableText(), false)
		batch.FanOut, batch.Rows, batch.RowNames = &request, nil, nil
	}
	return p.Jobs.SubmitBatch(ctx, r.by, batch)
}

// expectFromBody returns the answer to a submission that never reaches the store's
// Update, nil if it does.
func (s *simulation) expectFromBody(r *request) *answer {
	sub := r.submission
	if old := s.ledger.named(r.by.Organization, sub.name); old != nil && old.submitted(sub) && old.submission.body() == sub.body() {
		return &answer{id: old.ID}
	}
	if sub.faulty != "" {
		return &answer{code: fault.Invalid}
	}
	for _, w := range sub.rows {
		if w.before == "" {
			continue
		}
		source := s.ledger.named(r.by.Organization, w.before)
		if source == nil || source.Status == app.Failed || source.IsBatch() || sub.makes(w.before) {
			return &answer{code: fault.Invalid} // a row that reads itself is no better
		}
		r.sources[w.before] = source.ID
	}
	for _, name := range sub.after {
		awaited := s.ledger.named(r.by.Organization, name)
		if awaited == nil || name == sub.name {
			return &answer{code: fault.Invalid}
		}
		if awaited.Status != app.Completed && !(sub.any && awaited.Status.Finished()) {
			r.awaited[name] = awaited.ID
		}
	}
	return nil
}

// submitted reports whether a submission of this kind created the job.
func (e *entry) submitted(sub *submission) bool {
	return e.Private.Batch == "" && e.submission != nil && e.submission.batch == sub.batch
}

// expect sets the expected answer, according to the ledger at the moment when
// the store runs the request.
func (r *request) expect(s *simulation, c *change) {
	switch {
	case !c.ran || r.purge != nil:
		return // nothing changed, or judgePurge checks the answer
	case c.refused:
		r.want = &answer{code: fault.StorageFull}
		return
	}
	want := r.expected(s)
	r.want = &want
}

func (r *request) expected(s *simulation) answer {
	old := s.ledger.named(r.by.Organization, r.name)
	switch {
	case r.submission != nil:
		return r.expectedOfSubmission(s, old)
	case old == nil:
		return answer{code: fault.NotFound}
	case !r.by.May(old.Email):
		return answer{code: fault.Forbidden}
	}
	switch r.label.verb {
	case "retry":
		return expectedOfRetry(s, old)
	case "delete":
		return expectedOfDelete(s, old)
	}
	return answer{id: old.ID}
}

func (r *request) expectedOfSubmission(s *simulation, old *entry) answer {
	sub := r.submission
	if old != nil {
		if old.submitted(sub) && (old.submission.body() == sub.body() || old.submission.meaning() == sub.meaning()) {
			return answer{id: old.ID}
		}
		return answer{code: fault.JobAlreadyExists}
	}
	for i := range sub.rows {
		if sub.batch && s.ledger.named(r.by.Organization, sub.rowName(i)) != nil {
			return answer{code: fault.JobAlreadyExists}
		}
	}
	for _, all := range []map[string]app.JobID{r.sources, r.awaited} {
		for _, id := range all {
			if s.ledger.jobs[id] == nil {
				return answer{code: fault.Invalid}
			}
		}
	}
	return answer{created: true}
}

func expectedOfRetry(s *simulation, old *entry) answer {
	code := fault.JobNotFailed
	for _, e := range s.ledger.withRows(old) {
		switch {
		case e.Status != app.Failed || e.IsBatch():
		case s.ledger.doomed(e):
			code = fault.DependencyFailed
		default:
			return answer{id: old.ID}
		}
	}
	return answer{code: code}
}

func expectedOfDelete(s *simulation, old *entry) answer {
	for _, e := range s.ledger.withRows(old) {
		switch {
		case !e.Status.Finished():
			return answer{code: fault.JobNotFinished}
		case s.ledger.needed(e.ID), s.ledger.awaited(e.ID), e.Private.Unsettled:
			return answer{code: fault.FileInUse}
		}
	}
	return answer{}
}

// judgeEffect checks the effect of a successful request.
func (r *request) judgeEffect(s *simulation) {
	if r.purge != nil {
		return
	}
	if r.want.code != "" {
		s.faultf("%s: it changed something, but the answer must be %s", r.label, r.want.code)
		return
	}
	now := s.ledger.named(r.by.Organization, r.name)
	if (now == nil) != (r.label.verb == "delete") {
		s.faultf("%s: the job exists: %v", r.label, now != nil)
		return
	}
	if now == nil {
		return
	}
	all := s.ledger.withRows(now)
	if sub := r.submission; sub != nil && sub.batch && len(all) != 1+len(sub.rows) {
		s.faultf("%s: %d rows were created", r.label, len(all)-1)
	}
	for _, e := range all {
		switch {
		case e.IsBatch():
		case r.label.verb == "cancel" && !e.Status.Finished() && !e.Private.Stop:
			s.faultf("%s: %s is not stopped", r.label, e.Name)
		case r.label.verb == "retry" && e.Status == app.Failed && !s.ledger.doomed(e):
			s.faultf("%s: %s is not retried", r.label, e.Name)
		}
	}
}

// collect checks the answers that have arrived.
func (s *simulation) collect() {
	for {
		select {
		case take := <-s.answers:
			take()
			continue
		default:
		}
		break
	}
	for _, r := range s.inOrder() {
		if r.answered {
			delete(s.requests, r.label)
			s.tracef("%s: answer %+v", r.label, r.have.brief())
			s.judgeAnswer(r)
		}
	}
}

// brief omits what differs between runs of a seed.
func (a answer) brief() string {
	if a.code != "" {
		return string(a.code)
	}
	return fmt.Sprintf("ok, created %v", a.created)
}

// judgeAnswer compares an answer with the expected one. Acknowledged jobs are in
// the ledger, with which the store is compared from then on.
func (s *simulation) judgeAnswer(r *request) {
	if r.label.verb == "wait" {
		s.judgeWait(r)
		return
	}
	if r.purge != nil {
		s.judgePurge(r)
		return
	}
	if r.want == nil {
		s.faultf("%s: answered %s without calling the store", r.label, r.have.brief())
		return
	}
	want := *r.want
	removal := r.label.verb == "delete" && r.have.code == fault.Internal && s.fullSince(r.sent)
	switch {
	case removal && want.code == "": // the records are deleted, some files are not
		return
	case r.have.code != want.code || r.have.created != want.created:
		s.faultf("%s: answered %s, want %s", r.label, r.have.brief(), want.brief())
		return
	case want.code != "" || r.label.verb == "delete":
		return
	}
	if r.have.id == "" || want.id != "" && r.have.id != want.id {
		s.faultf("%s: the answer is about another job", r.label)
		return
	}
	if s.ledger.jobs[r.have.id] == nil && !s.deleted[r.have.id] {
		s.faultf("%s: the acknowledged job does not exist", r.label)
	}
}
