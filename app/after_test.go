package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// submitAfter submits an echo job that depends on other jobs.
func (s *site) submitAfter(by app.Caller, name string, after app.After) shownJob {
	s.t.Helper()
	rec, err := s.trySubmitAfter(by, name, after)
	must.OK(s.t, err)
	return decode(s.t, rec)
}

func (s *site) trySubmitAfter(by app.Caller, name string, after app.After) (app.Record, error) {
	sub := submission(s.t, name, `{}`)
	sub.Body = parseJSON(s.t, fmt.Sprintf(`{"jobName":%q,"after":"%s %v"}`, name, strings.Join(after.Names, " "), after.Any))
	sub.After = after
	rec, _, err := s.Jobs.Submit(s.t.Context(), by, sub)
	return rec, err
}

// queued returns the names of the jobs that the runner sees in the queue.
func (s *site) queued() (names []string) {
	s.t.Helper()
	var ids []app.JobID
	must.OK(s.t, s.Runs.Queue(s.t.Context(), placement.Local, func(w app.Waiting) app.Visit {
		ids = append(ids, w.ID)
		return app.NextJob
	}))
	for _, id := range ids {
		names = append(names, s.storedJob(id).Name)
	}
	return names
}

// settleAll propagates, as the runner does, until every dependent is up to date.
func (s *site) settleAll() {
	s.t.Helper()
	for s.unsettled() {
		must.OK(s.t, s.Runs.Propagate(s.t.Context()))
	}
}

func (s *site) unsettled() (some bool) {
	must.OK(s.t, s.Store.View(s.t.Context(), func(tx app.Tx) error {
		_, err := tx.Unpropagated()
		some = err == nil
		return nil
	}))
	return some
}

// standing returns a job's status and the reason why it is waiting or has failed.
func (s *site) standing(name string) string {
	s.t.Helper()
	j := s.job(chief, name)
	switch {
	case j.Failure != nil:
		return fmt.Sprintf("%s %s", j.Status, j.Failure.Code)
	case j.StatusReason != "":
		return fmt.Sprintf("%s %s", j.Status, j.StatusReason)
	}
	return string(j.Status)
}

// queueOf returns the member queue of a job.
func (s *site) queueOf(name string) string {
	s.t.Helper()
	rec, err := s.Jobs.Get(s.t.Context(), chief, name, 0)
	must.OK(s.t, err)
	var shown struct{ Queue json.RawMessage }
	must.OK(s.t, json.Unmarshal(rec, &shown))
	return string(shown.Queue)
}

func (s *site) wantStandings(what string, want map[string]string) {
	s.t.Helper()
	for name, standing := range want {
		must.Equal(s.t, fmt.Sprintf("%s: %s", what, name), s.standing(name), standing)
	}
}

func TestJobStartsWhenAllItWaitsForAreCompleted(t *testing.T) {
	s := newSite(t)
	a, b := s.submit(ann, "a", `{}`), s.submit(bob, "b", `{}`)
	c := s.submitAfter(ann, "c", app.After{Names: []string{"a", "b"}})
	must.Equal(t, "c starts after", c.After, []string{"a", "b"})
	must.Equal(t, "its position in the queue", s.queueOf("c"), `{"blockedBy":"dependency"}`)
	s.wantStandings("at first", map[string]string{"c": `QUEUED waiting for job "a" and 1 more`})
	must.Equal(t, "the queue", s.queued(), []string{"a", "b"})
	wantCode(t, "claim a job that waits", must.Error3(s.Runs.Claim(t.Context(), c.ID, placement.Devices{}, app.ClaimLimit{})), fault.NotFound)

	s.Run(a.ID, success())
	s.wantStandings("after a", map[string]string{"c": `QUEUED waiting for job "b"`})
	s.Run(b.ID, app.Ending{Lost: "the machine was restarted"}) // b is retried automatically
	s.wantStandings("after a lost attempt of b", map[string]string{"c": `QUEUED waiting for job "b"`})
	s.Run(b.ID, success())
	s.wantStandings("after b", map[string]string{"c": "QUEUED"})
	must.Equal(t, "its position in the queue", s.queueOf("c"), "")
	must.Equal(t, "the queue", s.queued(), []string{"c"})
	s.Run(c.ID, success())
	if got := s.job(ann, "c"); got.Status != app.Completed || len(got.After) != 2 {
		t.Errorf("%+v, want it to be completed and say what it followed", got)
	}
	s.submitAfter(ann, "d", app.After{Names: []string{"a", "c"}})
	must.Equal(t, "the queue", s.queued(), []string{"d"})
}

func TestFailureReachesAllThatWait(t *testing.T) {
	s := newSite(t)
	a, other := s.submit(ann, "a", `{}`), s.submit(ann, "other", `{}`)
	s.submitAfter(ann, "b", app.After{Names: []string{"a"}})
	s.submitAfter(bob, "c", app.After{Names: []string{"other", "b"}})
	d := s.submitAfter(ann, "d", app.After{Names: []string{"b", "other"}, Any: true})
	s.Run(a.ID, failure())
	s.wantStandings("a failed", map[string]string{
		"b": "FAILED DEPENDENCY_FAILED", "c": "FAILED DEPENDENCY_FAILED", "d": `QUEUED waiting for job "other"`,
	})
	if f := s.job(bob, "c").Failure; !strings.Contains(f.Message, `Job "b", which this job depends on, failed`) {
		t.Errorf("c failed because %q, want the job that it waited for", f.Message)
	}
	s.Run(other.ID, failure())
	must.Equal(t, "the queue", s.queued(), []string{"d"})
	s.Run(d.ID, success())

	wantCode(t, "retry b before a", must.Error2(s.Jobs.Retry(t.Context(), ann, "b")), fault.DependencyFailed)
	s.retry(ann, "a")
	s.wantStandings("a is retried", map[string]string{
		"a": "QUEUED", "b": `QUEUED waiting for job "a"`, "c": "FAILED DEPENDENCY_FAILED", "d": "COMPLETED",
	})
	if f := s.job(bob, "c").Failure; !strings.Contains(f.Message, `Job "other", which this job depends on, failed`) {
		t.Errorf("c failed because %q, want the remaining dependency", f.Message)
	}
	s.retry(ann, "other")
	s.wantStandings("other is retried", map[string]string{"c": `QUEUED waiting for job "other" and 1 more`})
	s.Run(other.ID, success())
	s.Run(a.ID, success())
	s.Run(s.job(ann, "b").ID, success())
	s.Run(s.job(ann, "c").ID, success())
}

func TestOnlyWhatFailedForADependencyIsReopened(t *testing.T) {
	s := newSite(t)
	a := s.submit(ann, "a", `{}`)
	s.submitAfter(ann, "stopped", app.After{Names: []string{"a"}})
	s.cancel(ann, "stopped")
	s.Run(a.ID, failure())
	s.retry(ann, "a")
	s.wantStandings("a is retried", map[string]string{"stopped": "FAILED STOPPED"})
	s.retry(ann, "stopped")
	s.wantStandings("both are", map[string]string{"stopped": `QUEUED waiting for job "a"`})
	s.Run(a.ID, success())
	must.Equal(t, "the queue", s.queued(), []string{"stopped"})
}

func TestSubmissionAfterAFailedJobFailsAndFollowsItsRetry(t *testing.T) {
	s := newSite(t)
	s.Run(s.submit(ann, "a", `{}`).ID, failure())
	if b := s.submitAfter(ann, "b", app.After{Names: []string{"a"}}); b.Status != app.Failed || b.Failure.Code != app.FailedDependency {
		t.Errorf("b is %s %+v, want it failed", b.Status, b.Failure)
	}
	s.submitAfter(ann, "c", app.After{Names: []string{"a"}, Any: true})
	s.wantStandings("submitted", map[string]string{"c": "QUEUED"})
	s.retry(ann, "a")
	s.wantStandings("a is retried", map[string]string{"b": `QUEUED waiting for job "a"`})
}

func TestJobsWaitForAWholeBatchAndRowsForAJob(t *testing.T) {
	s := newSite(t)
	prep := s.submit(ann, "prep", `{}`)
	sub := batchSubmission(t, "screen", `{}`, `{"steps":2}`)
	sub.After = app.After{Names: []string{"prep"}}
	rec, _, err := s.Jobs.SubmitBatch(t.Context(), ann, sub)
	must.OK(t, err)
	must.Equal(t, "the batch starts after", decode(t, rec).After, []string{"prep"})
	s.submitAfter(ann, "report", app.After{Names: []string{"screen"}})
	must.Equal(t, "the queue", s.queued(), []string{"prep"})
	if n, err := s.Lists.FailingDependants(t.Context(), ann, "prep"); n != 3 || err != nil {
		t.Errorf("%d jobs fail with prep, %v; want both rows and the dependents of their batch", n, err)
	}
	s.Run(prep.ID, success())
	must.Equal(t, "the queue", s.queued(), []string{"screen-1", "screen-2"})
	one, two := s.job(ann, "screen-1").ID, s.job(ann, "screen-2").ID
	s.Run(one, success())
	s.Run(two, failure())
	s.wantStandings("a row failed", map[string]string{"report": "FAILED DEPENDENCY_FAILED"})
	s.retry(ann, "screen")
	s.wantStandings("the batch is retried", map[string]string{"report": `QUEUED waiting for job "screen"`})
	s.Run(two, success())
	must.Equal(t, "the queue", s.queued(), []string{"report"})
}

func TestCancelTellsWhoFallsOrSparesThem(t *testing.T) {
	s := newSite(t)
	a := s.submit(ann, "a", `{}`)
	s.submitAfter(ann, "b", app.After{Names: []string{"a"}})
	s.submitAfter(ann, "c", app.After{Names: []string{"a", "b"}})
	s.submitAfter(ann, "end", app.After{Names: []string{"a"}, Any: true})
	if n, err := s.Lists.FailingDependants(t.Context(), ann, "a"); n != 2 || err != nil {
		t.Errorf("%d jobs fail with a, %v; want b and c", n, err)
	}
	s.cancelAlone(ann, "a")
	s.wantStandings("a is cancelled alone", map[string]string{
		"a": "FAILED STOPPED", "b": `QUEUED waiting for job "a"`, "c": `QUEUED waiting for job "a" and 1 more`, "end": "QUEUED",
	})
	s.submitAfter(ann, "late", app.After{Names: []string{"a"}})
	s.wantStandings("submitted later", map[string]string{"late": `QUEUED waiting for job "a"`})
	wantCode(t, "delete a", s.Jobs.Delete(t.Context(), ann, "a"), fault.FileInUse)
	s.Advance(day)
	gone, err := s.Jobs.Expire(t.Context(), a.ID, func(*app.Job) bool { return true })
	if gone != nil || err != nil {
		t.Errorf("retention deletes %+v, %v", gone, err)
	}
	s.retry(ann, "a")
	attempt := s.Start(a.ID).Attempts
	s.cancel(ann, "a")
	s.wantStandings("a is being stopped", map[string]string{"b": `QUEUED waiting for job "a"`})
	must.OK(t, s.Runs.Finish(t.Context(), a.ID, attempt, app.Ending{Lost: "it was stopped"}))
	s.wantStandings("a was stopped", map[string]string{
		"a": "FAILED STOPPED", "b": "FAILED DEPENDENCY_FAILED", "c": "FAILED DEPENDENCY_FAILED", "late": "FAILED DEPENDENCY_FAILED",
	})
	must.OK(t, s.Jobs.Delete(t.Context(), ann, "a"))
	wantCode(t, "retry b without a", must.Error2(s.Jobs.Retry(t.Context(), ann, "b")), fault.DependencyFailed)
}

func TestDependantsAreSparedOnce(t *testing.T) {
	s := newSite(t)
	a := s.submit(ann, "a", `{}`)
	s.submitAfter(ann, "b", app.After{Names: []string{"a"}})
	s.cancelAlone(ann, "a")
	s.retry(ann, "a")
	s.Run(a.ID, failure())
	s.wantStandings("a was retried and failed", map[string]string{"b": "FAILED DEPENDENCY_FAILED"})
}

func TestBatchIsCancelledAlone(t *testing.T) {
	s := newSite(t)
	s.submitBatch(ann, "screen", `{}`, `{"steps":2}`)
	s.submitAfter(ann, "all", app.After{Names: []string{"screen"}})
	s.submitAfter(ann, "one", app.After{Names: []string{"screen-1"}})
	for name, want := range map[string]int{"screen": 2, "screen-1": 2, "screen-2": 1} {
		if n, err := s.Lists.FailingDependants(t.Context(), ann, name); n != want || err != nil {
			t.Errorf("%d jobs fail with %s, %v; want %d", n, name, err, want)
		}
	}
	s.cancelAlone(ann, "screen")
	waiting := map[string]string{"all": `QUEUED waiting for job "screen"`, "one": `QUEUED waiting for job "screen-1"`}
	s.wantStandings("the batch is cancelled alone", waiting)
	s.retry(ann, "screen-1")
	s.Run(s.job(ann, "screen-1").ID, success())
	s.wantStandings("a row is retried", map[string]string{"all": "FAILED DEPENDENCY_FAILED", "one": "QUEUED"})
}

// TestDependantsAreToldInSteps uses more dependents than one transaction handles, and
// restarts the service before all of them have been notified.
func TestDependantsAreToldInSteps(t *testing.T) {
	const rows = 250
	s := newSite(t)
	a := s.submit(ann, "a", `{}`)
	settings := slices.Repeat([]string{`{}`}, rows)
	sub := batchSubmission(t, "many", settings...)
	sub.After = app.After{Names: []string{"a"}}
	must.OK(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, sub)))
	count := func(status app.Status) int { return *s.job(ann, "many").Counts.Of(status) }

	s.Run(a.ID, failure())
	if n := count(app.Failed); n == 0 || n == rows {
		t.Errorf("the first transaction updated %d dependents, want some", n)
	}
	wantCode(t, "delete a", s.Jobs.Delete(t.Context(), ann, "a"), fault.FileInUse)
	must.OK(t, must.Error2(s.Jobs.Retry(t.Context(), ann, "a"))) // while dependents are still to be updated
	s.Run(a.ID, failure())
	s.settleAll()
	must.Equal(t, "how many failed", count(app.Failed), rows)
	s.retry(ann, "a")
	s.Run(a.ID, success()) // while some dependents are still to be requeued
	wantCode(t, "delete a now", s.Jobs.Delete(t.Context(), ann, "a"), fault.FileInUse)
	s.Service = s.WithOptions(s.Store, app.Options{}, echoFile)
	s.settleAll()
	must.Equal(t, "how many are queued", len(s.queued()), rows)
}

func TestRetryOfABatchTakesItsRowsInAnyOrder(t *testing.T) {
	s := newSite(t)
	outside := s.submit(ann, "outside", `{}`)
	s.submitPipeline("b", pipelineStep("b-1", "b-2"), pipelineStep("b-2", "b-3"), pipelineStep("b-3"), pipelineStep("b-4", "outside"))
	s.Run(outside.ID, failure())
	s.Run(s.job(ann, "b-3").ID, failure())
	s.wantStandings("failed", map[string]string{
		"b-1": "FAILED DEPENDENCY_FAILED", "b-2": "FAILED DEPENDENCY_FAILED", "b-4": "FAILED DEPENDENCY_FAILED", "b": "FAILED 4 of 4 jobs failed",
	})
	s.retry(ann, "b")
	s.wantStandings("tried again", map[string]string{
		"b-1": `QUEUED waiting for job "b-2"`, "b-2": `QUEUED waiting for job "b-3"`, "b-3": "QUEUED", "b-4": "FAILED DEPENDENCY_FAILED", "b": "QUEUED",
	})
	for _, name := range []string{"b-3", "b-2", "b-1"} {
		s.Run(s.job(ann, name).ID, success())
	}
	wantCode(t, "retry a job that waits for another", must.Error2(s.Jobs.Retry(t.Context(), ann, "b")), fault.DependencyFailed)
	s.retry(ann, "outside")
	s.Run(outside.ID, success())
	s.Run(s.job(ann, "b-4").ID, success())
	s.wantStandings("all done", map[string]string{"b": "COMPLETED"})
}

func TestWhatAJobWaitsForIsPartOfItsWork(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"a", "b"} {
		s.submit(ann, name, `{}`)
	}
	first := s.submitAfter(ann, "c", app.After{Names: []string{"a", "b"}})
	must.Equal(t, "the job of the same names in another order", s.submitAfter(ann, "c", app.After{Names: []string{"b", "a"}}).ID, first.ID)
	for _, other := range []app.After{{}, {Names: []string{"a"}}, {Names: []string{"a", "b"}, Any: true}} {
		_, err := s.trySubmitAfter(ann, "c", other)
		wantCode(t, fmt.Sprint(other), err, fault.JobAlreadyExists)
		if err != nil && !strings.Contains(err.Error(), "differs in after") {
			t.Errorf("%v: %v, want it to say what differs", other, err)
		}
	}
}

func TestWaitersAreWokenWithTheirDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		a := s.submit(ann, "a", `{}`)
		s.submitAfter(ann, "b", app.After{Names: []string{"a"}})
		answer := s.waitFor("b")
		s.Run(a.ID, failure())
		must.Equal(t, "the status that the waiter got", (<-answer).Status, app.Failed)
	})
}

// report returns a pipeline job that reads a file of prep and waits for run to finish.
func report(t *testing.T) app.PipelineJob {
	return app.PipelineJob{Name: "report", Type: "echo", Settings: parseJSON(t, `{"input":"job:prep/a.txt"}`), After: &app.After{Names: []string{"run"}, Any: true}}
}

func TestRetryWaitsAgainForTheEndOfWhatFellToo(t *testing.T) {
	s := newSite(t)
	s.submitPipeline("p", pipelineStep("prep"), pipelineStep("middle", "prep"), pipelineStep("run", "middle"), report(t))
	s.Run(s.job(ann, "prep").ID, failure())
	fell := "FAILED DEPENDENCY_FAILED"
	s.wantStandings("prep failed", map[string]string{"middle": fell, "run": fell, "report": fell})
	s.retry(ann, "prep")
	s.wantStandings("prep is retried", map[string]string{"report": `QUEUED waiting for job "prep" and 1 more`})
	s.makes("prep", "a.txt", 1)
	s.Run(s.job(ann, "middle").ID, success())
	s.wantStandings("middle is done", map[string]string{"report": `QUEUED waiting for job "run"`})
	s.Run(s.job(ann, "run").ID, failure())
	s.wantStandings("run has failed", map[string]string{"report": "QUEUED"})
}

// TestRetryDoesNotWaitForTheEndOfWhatStaysFailed retries one of two failed dependencies
// of a job that failed because of them.
func TestRetryDoesNotWaitForTheEndOfWhatStaysFailed(t *testing.T) {
	s := newSite(t)
	s.submitPipeline("p", pipelineStep("other"), pipelineStep("prep"), pipelineStep("run", "other", "prep"), report(t))
	s.Run(s.job(ann, "prep").ID, failure())
	s.Run(s.job(ann, "other").ID, failure())
	s.retry(ann, "prep")
	s.wantStandings("prep is retried", map[string]string{"run": "FAILED DEPENDENCY_FAILED", "report": `QUEUED waiting for job "prep"`})
	if s.unsettled() {
		t.Error("some dependents are not updated yet")
	}
}

// TestRetryIsToldInOrder has a row depend on a later row, and handles one dependent per
// transaction.
func TestRetryIsToldInOrder(t *testing.T) {
	s := newSite(t)
	s.Service = s.WithOptions(s.Store, app.Options{PropagationStep: 1}, echoFile)
	s.submitPipeline("p", report(t), pipelineStep("run", "prep"), pipelineStep("prep"))
	s.Run(s.job(ann, "prep").ID, failure())
	s.settleAll()
	s.retry(ann, "prep")
	s.settleAll()
	s.wantStandings("prep is retried", map[string]string{"report": `QUEUED waiting for job "prep" and 1 more`, "run": `QUEUED waiting for job "prep"`})
}

func TestRetryOfABatchWaitsForTheEndOfItsRows(t *testing.T) {
	s := newSite(t)
	s.submitPipeline("p", report(t), pipelineStep("run"), pipelineStep("prep"))
	s.Run(s.job(ann, "prep").ID, failure())
	s.Run(s.job(ann, "run").ID, failure())
	s.retry(ann, "p")
	s.wantStandings("tried again", map[string]string{"report": `QUEUED waiting for job "prep" and 1 more`})
}
