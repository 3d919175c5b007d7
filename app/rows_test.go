package app_test

import (
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/job/quota"
	"molrun/app/test/must"
)

// newStepped returns a site where each transaction changes two rows of a batch.
func newStepped(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.restart()
	return s
}

// restart restarts the service with the same records.
func (s *site) restart() {
	of := func(_, user string) quota.Quota {
		if user == ann.Email {
			return quota.Quota{Queued: 6}
		}
		return quota.Quota{}
	}
	s.Service = s.WithOptions(s.Store, app.Options{BatchStep: 2, Quota: of}, echoFile)
}

// changeRows completes all pending changes of batches.
func (s *site) changeRows() {
	s.t.Helper()
	for more := true; more; {
		var err error
		more, err = s.Runs.ChangeSomeRows(s.t.Context())
		must.OK(s.t, err)
	}
}

func TestLargeBatchIsStoppedAndTriedAgainInPieces(t *testing.T) {
	s := newStepped(t)
	s.submitBatch(ann, "b", `{}`, `{"steps":2}`, `{"steps":3}`, `{"steps":4}`, `{"steps":5}`)
	running := s.Start(s.job(ann, "b-3").ID)
	s.cancel(ann, "b")
	s.wantBatch("when the intent is stored", app.Running, app.Counts{Queued: 2, Running: 1, Failed: 2})
	must.Equal(t, "statusReason meanwhile", s.job(ann, "b").StatusReason, "being stopped")
	s.restart()
	_, _, err := s.Runs.Claim(t.Context(), s.job(ann, "b-4").ID, placement.Devices{}, app.ClaimLimit{})
	wantCode(t, "claim a row of a batch that is being stopped", err, fault.NotFound)
	rows, err := s.Runs.ClaimRows(t.Context(), running, app.ClaimLimit{Worker: "p", Rows: 5, Seconds: 1e9})
	if err != nil || len(rows) > 0 {
		t.Errorf("a worker takes %d rows of it, error %v; want none", len(rows), err)
	}
	wantCode(t, "retry it in the meantime", must.Error2(s.Jobs.Retry(t.Context(), ann, "b")), fault.JobNotFailed)
	wantCode(t, "retry a row of it", must.Error2(s.Jobs.Retry(t.Context(), ann, "b-1")), fault.JobNotFailed)
	s.changeRows()
	s.wantBatch("after the restart", app.Running, app.Counts{Running: 1, Failed: 4})
	must.Equal(t, "the running row is to be stopped", s.job(ann, "b-3").StatusReason, "being stopped")
	must.OK(t, s.Runs.Finish(t.Context(), running.ID, 1, app.Ending{Outcome: &app.Outcome{Cause: app.CauseStopped}}))
	s.wantBatch("when it has exited", app.Failed, app.Counts{Failed: 5})

	s.retry(ann, "b")
	s.wantBatch("when the retry is stored", app.Queued, app.Counts{Queued: 2, Failed: 3})
	wantCode(t, "more jobs than the quota allows along with all rows", must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "c", `{}`, `{}`))), fault.QuotaExceeded)
	s.submit(ann, "one", `{}`)
	s.restart()
	s.changeRows()
	s.wantBatch("when all rows are tried again", app.Queued, app.Counts{Queued: 5})

	s.cancel(ann, "b")
	s.cancel(ann, "b")
	s.changeRows()
	s.wantBatch("after another cancel", app.Failed, app.Counts{Failed: 5})
}

// TestRetryLooksForARowThatCanBeTriedAgain retries a batch whose first rows can't be
// retried.
func TestRetryLooksForARowThatCanBeTriedAgain(t *testing.T) {
	s := newStepped(t)
	u := s.Upload(ann, "a.txt", "text")
	s.submitBatch(ann, "b", `{"input":"inputs/a.txt"}`, `{"input":"inputs/a.txt"}`, `{"input":"inputs/a.txt"}`, `{}`)
	s.submitBatch(bob, "all", `{"input":"`+string(u.ID)+`"}`, `{"input":"`+string(u.ID)+`"}`, `{"input":"`+string(u.ID)+`"}`)
	for _, of := range []struct {
		by   app.Caller
		name string
	}{{ann, "b"}, {bob, "all"}} {
		s.cancel(of.by, of.name)
		s.changeRows()
	}
	must.OK(t, s.Files.Delete(t.Context(), ann, string(u.ID)))
	s.retry(ann, "b")
	s.wantBatch("after the retry", app.Queued, app.Counts{Queued: 1, Failed: 3})
	wantCode(t, "retry only such rows", must.Error2(s.Jobs.Retry(t.Context(), bob, "all")), fault.InputRemoved)
	const gone = `the file "a.txt" of setting "input", which job "b-1" reads, was deleted; upload it again and submit the job under another name`
	must.Fail(t, "retry one of them", must.Error2(s.Jobs.Retry(t.Context(), ann, "b-1")), gone)
}
