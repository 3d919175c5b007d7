package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// request is one request of a user.
type request struct {
	label      label
	by         app.Caller
	name       string
	submission *submission // for submit and batch
	purge      *purge      // for prune and retain
	file       *file       // for erase
	part       *part       // for part
	hook       *hookUse    // for hook, change and unhook

	sent  time.Time
	named map[string]namedJob    // jobs that the submission refers to, by name
	files map[string]*app.Upload // uploads that the submission refers to, by path
	alone bool                   // for cancel: dependents keep waiting
	above app.JobID              // all new jobs have higher IDs

	before app.Status // for wait: the job's status when the request was sent

	want     *answer // response expected from the ledger when the store ran the request
	have     answer
	answered bool
	crowded  bool // the limits might not have allowed its bytes when it was sent
}

// namedJob is a job at the time when a submission that refers to it was checked.
type namedJob struct {
	id     app.JobID
	status app.Status
	needed bool // the submission must wait for the job, or reads its result
}

// answer is the response to a request: an error code, or "" for success, and the job.
type answer struct {
	code    fault.Code
	created bool
	id      app.JobID
	status  app.Status // for wait
	broken  bool       // the connection broke before a response
}

// send starts a request; collect checks its response.
func (s *simulation) send(r *request) {
	s.sends++
	r.label.of = fmt.Sprintf("%s/%s by %s, request %d", r.by.Organization, r.name, r.by.Email, s.sends)
	if r.purge != nil {
		r.label.of = fmt.Sprintf("by the operator, request %d", s.sends)
	}
	r.sent, r.above, r.named = time.Now(), s.ledger.highest, map[string]namedJob{}
	r.files = map[string]*app.Upload{}
	r.crowded = s.mightExceedStorage(r.by, r.sends())
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
			have = answer{code: fault.CodeOf(err), broken: errors.Is(err, errBroken)}
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
	case "part":
		return answer{}, r.part.call(ctx, p)
	case "erase":
		return answer{}, p.Files.Delete(ctx, r.by, string(r.file.id))
	case "hook", "change", "unhook":
		return answer{}, r.callHook(ctx, p)
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
	labels := app.Labels{Notify: sub.notify}
	body, err := strictjson.Parse([]byte(sub.body()))
	if err != nil {
		return nil, false, err
	}
	settings := body.Member("settings")
	if !sub.batch {
		return p.Jobs.Submit(ctx, r.by, app.Submission{
			Name: sub.name, Type: sub.typ, Settings: settings, Priority: sub.priority, Body: body,
			After: app.After{Names: sub.after, Any: sub.any}, Labels: labels,
		})
	}
	if sub.pipeline {
		return p.Jobs.SubmitPipeline(ctx, r.by, sub.asPipeline(body))
	}
	batch := app.BatchSubmission{
		Name: sub.name, Type: sub.typ, Rows: settings.Items, RowNames: sub.rowNames, Priority: sub.priority, Body: body,
		After: app.After{Names: sub.after, Any: sub.any}, Labels: labels,
	}
	return p.Jobs.SubmitBatch(ctx, r.by, batch)
}

// asPipeline returns the submission as a pipeline with the given body.
func (s *submission) asPipeline(body *strictjson.Value) app.Pipeline {
	var p app.Pipeline
	p.Name, p.Priority, p.Body, p.After = s.name, s.priority, body, app.After{Names: s.after, Any: s.any}
	p.Labels.Notify = s.notify
	for i, w := range s.rows {
		j := app.PipelineJob{Name: s.rowName(i), Type: w.typ, Settings: body.Member("jobs").Items[i].Member("settings")}
		if w.after != nil {
			j.After = &app.After{Names: w.after, Any: w.any}
		}
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// expectFromBody returns the expected response to a submission if it is sent before the
// store's Update is called, or nil otherwise.
func (s *simulation) expectFromBody(r *request) *answer {
	sub := r.submission
	if old := s.ledger.named(r.by.Organization, sub.name); old != nil && old.submitted(sub) && old.submission.body() == sub.body() {
		return &answer{id: old.ID}
	}
	if sub.priority > 10 {
		return &answer{code: fault.Invalid}
	}
	for i, w := range sub.rows {
		if !s.limits.canEverRun(r.by, w) {
			return &answer{code: fault.Invalid}
		}
		if w.before != "" && !s.mayName(r, sub.row, w.before, func(e *entry) bool { return e.Status != app.Failed && !e.IsBatch() }, false) {
			return &answer{code: fault.Invalid}
		}
		r.needs(w.before)
		if w.file != "" {
			u := s.newest(r.by, path.Base(w.file))
			if u == nil {
				return &answer{code: fault.Invalid}
			}
			r.files[w.file] = u
		}
		if after, any := sub.rowAfter(i); sub.pipeline && w.after != nil {
			for _, name := range after {
				if !s.mayName(r, sub.row, name, func(*entry) bool { return true }, any) {
					return &answer{code: fault.Invalid}
				}
			}
		}
	}
	for _, name := range sub.after {
		none := func(string) int { return -1 }
		if name == sub.name || !s.mayName(r, none, name, func(*entry) bool { return true }, sub.any) {
			return &answer{code: fault.Invalid}
		}
	}
	return nil
}

// needs records that a submission reads the result of a job, even if the result already
// exists.
func (r *request) needs(name string) {
	if n, known := r.named[name]; known {
		n.needed = true
		r.named[name] = n
	}
}

// mayName records a job that a submission refers to, unless it is in the same batch. It
// reports whether the submission may refer to it.
func (s *simulation) mayName(r *request, row func(string) int, name string, may func(*entry) bool, any bool) bool {
	if row(name) >= 0 {
		return true
	}
	e := s.ledger.named(r.by.Organization, name)
	if e == nil || !may(e) {
		return false
	}
	n := r.named[name]
	n.id, n.status = e.ID, e.Status
	n.needed = n.needed || e.Status != app.Completed && !(any && e.Status.Finished())
	r.named[name] = n
	return true
}

// submitted reports whether a submission of this kind created the job.
func (e *entry) submitted(sub *submission) bool {
	return e.Private.Batch == "" && e.submission != nil && e.submission.batch == sub.batch
}

// expect sets the expected response according to the ledger at the time when the store
// runs the request.
func (r *request) expect(s *simulation, c *change) {
	switch {
	case !c.ran || r.purge != nil:
		return // nothing changed, or judgePurge checks the response
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
	case r.file != nil:
		return r.expectedOfFile(s)
	case r.hook != nil:
		return r.expectedOfHook(s)
	case r.part != nil:
		return answer{}
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
	if refused := s.overLimitAnswer(r.by.Organization, r.by.Email, len(sub.rows)); refused != nil {
		return *refused
	}
	for i := range sub.rows {
		if sub.batch && s.ledger.named(r.by.Organization, sub.rowName(i)) != nil {
			return answer{code: fault.JobAlreadyExists}
		}
	}
	for _, n := range r.named {
		if s.ledger.jobs[n.id] == nil && n.needed {
			return answer{code: fault.Invalid}
		}
	}
	for _, u := range r.files {
		if s.uploads[u.ID] == nil {
			return answer{code: fault.Invalid}
		}
	}
	return answer{created: true}
}

func expectedOfRetry(s *simulation, old *entry) answer {
	code, batch, jobs := fault.JobNotFailed, app.JobID(""), 1
	switch {
	case old.IsBatch():
		batch, jobs = old.ID, old.Counts.Failed
	case old.Status != app.Failed:
		return answer{code: code}
	}
	if refused := s.overLimitAnswer(old.Organization, old.Email, jobs); refused != nil {
		return *refused
	}
	for _, e := range s.ledger.withRows(old) {
		switch {
		case e.Status != app.Failed || e.IsBatch():
		case s.ledger.cannotRetry(e, batch):
			code = fault.DependencyFailed
		case s.lacksInput(e):
			code = fault.InputRemoved
		default:
			return answer{id: old.ID}
		}
	}
	return answer{code: code}
}

// lacksInput reports whether a file that the job reads has been deleted.
func (s *simulation) lacksInput(e *entry) bool {
	for _, src := range e.Private.References {
		if src.Upload == "" && s.ledger.jobs[src.Job] == nil || src.Upload != "" && s.uploads[src.Upload] == nil {
			return true
		}
	}
	return false
}

func expectedOfDelete(s *simulation, old *entry) answer {
	for _, e := range s.ledger.withRows(old) {
		switch {
		case !e.Status.Finished():
			return answer{code: fault.JobNotFinished}
		case s.ledger.needed(e.ID), s.ledger.awaited(e.ID), e.Private.Unpropagated:
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
		case r.label.verb == "retry" && e.Status == app.Failed && !s.ledger.cannotRetry(e, "") && !s.lacksInput(e):
			s.faultf("%s: %s is not retried", r.label, e.Name)
		}
	}
}

// collect checks the responses that have arrived.
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

// brief describes a response without anything that differs between runs of a seed.
func (a answer) brief() string {
	if a.code != "" {
		return string(a.code)
	}
	return fmt.Sprintf("ok, created %v", a.created)
}

// judgeAnswer compares a response with the expected one. The jobs that it acknowledges
// are in the ledger, so the store is compared with them from now on.
func (s *simulation) judgeAnswer(r *request) {
	if r.label.verb == "wait" {
		s.judgeWait(r)
		return
	}
	if r.purge != nil {
		s.judgePurge(r)
		return
	}
	if r.part != nil {
		s.judgePart(r)
		return
	}
	if r.want == nil {
		s.faultf("%s: answered %s without calling the store", r.label, r.have.brief())
		return
	}
	want := *r.want
	removal := r.label.verb == "delete" && r.have.code == fault.Internal && s.fullSince(r.sent)
	switch {
	case removal && want.code == "": // the records were deleted, but not all files
		return
	case r.have.code != want.code || r.have.created != want.created:
		s.faultf("%s: answered %s, want %s", r.label, r.have.brief(), want.brief())
		return
	case want.code != "" || r.label.verb == "delete" || r.file != nil || r.hook != nil:
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
