package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

// rowNumbers claims further rows for a worker and returns their names.
func (s *site) rowNumbers(first *app.Job, p app.ClaimLimit) string {
	s.t.Helper()
	rows, err := s.Runs.ClaimRows(s.t.Context(), first, p)
	must.OK(s.t, err)
	var names []string
	for _, j := range rows {
		names = append(names, j.Name)
		stored := s.storedJob(j.ID)
		if !stored.Private.Claimed || stored.Private.Worker != p.Worker || stored.Private.Token == "" || stored.Attempts != 1 || stored.Status != app.Queued {
			s.t.Errorf("row %s: %+v", j.Name, stored.Private)
		}
		must.Equal(s.t, fmt.Sprintf("row %s has the CPUs", j.Name), stored.Private.Devices.CPUs, first.Private.Devices.CPUs)
	}
	return strings.Join(names, " ")
}

// A worker gets rows of one batch in order, with the same algorithm and resources, up to
// its time limit. It gets no jobs from other batches, and no rows that have been tried
// before or are waiting for other jobs.
func TestClaimRows(t *testing.T) {
	s := newSite(t)
	var rows []string
	for n := range 12 {
		rows = append(rows, fmt.Sprintf(`{"steps":%d}`, n+1))
	}
	s.submitBatch(ann, "b", rows...)
	s.submitBatch(ann, "other", `{"steps":1}`, `{"steps":2}`)
	s.submitBatch(bob, "theirs", `{"steps":1}`, `{"steps":2}`)
	row := func(n int) app.JobID { return s.job(ann, fmt.Sprintf("b-%d", n)).ID }
	claim := func(n int) *app.Job {
		t.Helper()
		j, _, err := s.Runs.Claim(t.Context(), row(n), placement.Devices{CPUs: []int{3}}, app.ClaimLimit{})
		must.OK(t, err)
		return j
	}
	p := app.ClaimLimit{Worker: "P", Rows: 3, Seconds: 1000}
	first := claim(1)
	must.Equal(t, "rows without a history", s.rowNumbers(first, p), "")
	must.Equal(t, "a row without others is in the worker", s.storedJob(first.ID).Private.Worker, "")
	for n := 2; n <= 4; n++ {
		s.Run(row(n), success()) // each takes a minute
	}
	s.cancel(ann, "b-5")
	lost := app.Ending{Lost: "its node went down"}
	s.Run(row(6), lost) // it now waits for its second attempt
	if j := s.job(ann, "b-6"); j.Status != app.Queued || j.Attempts != 1 {
		t.Fatalf("%s after %d attempts", j.Status, j.Attempts)
	}
	must.Equal(t, "rows for 150 s", s.rowNumbers(first, app.ClaimLimit{Worker: "P", Rows: 3, Seconds: 150}), "b-7 b-8")
	must.Equal(t, "the first row is in the worker", s.storedJob(first.ID).Private.Worker, "P")
	must.Equal(t, "three rows", s.rowNumbers(first, p), "b-9 b-10 b-11")
	must.OK(t, s.Runs.Finish(t.Context(), first.ID, 1, success()))
	if done := s.storedJob(first.ID); done.Private.Worker != "" || done.Status != app.Completed {
		t.Errorf("after its end: %+v", done.Private)
	}
	if got := s.rowNumbers(first, p); got != "b-12" { // even after the first row has ended
		t.Errorf("the rest is %q", got)
	}
	must.Equal(t, "a job that has ended is in a worker", s.storedJob(first.ID).Private.Worker, "")
	must.Equal(t, "rows then", s.rowNumbers(first, p), "")
}

// One claim takes a short row and further rows for its worker. Rows that are not short
// stay in the queue.
func TestClaimOfAShortRow(t *testing.T) {
	s := newSite(t, `format = 1
type = "quick"
version = "1"
title = "Quick"
retries = 1
command = ["true"]
[[parameters]]
name = "n"
type = "integer"
[estimate]
expected_seconds = 2
`)
	submit := func(name string) {
		t.Helper()
		body, err := strictjson.Parse(fmt.Appendf(nil, `{"batchName":%q,"type":"quick","settings":[{"n":1},{"n":2},{"n":3},{"n":4}]}`, name))
		must.OK(t, err)
		sub := app.BatchSubmission{Name: name, Type: "quick", Body: body, Rows: body.Member("settings").Items}
		must.OK(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, sub)))
	}
	claim := func(name string, p app.ClaimLimit) (*app.Job, string) {
		t.Helper()
		j, rows, err := s.Runs.Claim(t.Context(), s.job(ann, name).ID, placement.Devices{}, p)
		must.OK(t, err)
		var names []string
		for _, r := range rows {
			names = append(names, r.Name)
			if stored := s.storedJob(r.ID); stored.Private.Worker != p.Worker || !stored.Private.Claimed || stored.Attempts != 1 {
				t.Errorf("row %s: %+v", r.Name, stored.Private)
			}
		}
		return j, strings.Join(names, " ")
	}
	p := app.ClaimLimit{Worker: "P", Rows: 10, Seconds: 4, MaxRowSeconds: 2}
	submit("b")
	first, rows := claim("b-1", p)
	if worker := s.storedJob(first.ID).Private.Worker; rows != "b-2 b-3" || worker != "P" {
		t.Errorf("for 4 s of 2 s each it got %q, and is in the worker %q", rows, worker)
	}
	last, rows := claim("b-4", p)
	if worker := s.storedJob(last.ID).Private.Worker; rows != "" || worker != "" || !last.Private.Claimed {
		t.Errorf("the last row got %q, and is in the worker %q", rows, worker)
	}
	if _, _, err := s.Runs.Claim(t.Context(), s.job(ann, "b-2").ID, placement.Devices{}, p); !errors.Is(err, fault.NotFound) {
		t.Errorf("a row of a worker is claimed again: %v", err)
	}
	submit("long")
	_, rows = claim("long-1", app.ClaimLimit{Worker: "P", Rows: 10, Seconds: 100, MaxRowSeconds: 1.9})
	must.Equal(t, "further rows for a row that is not short", rows, "")
	_, rows = claim("long-2", app.ClaimLimit{})
	must.Equal(t, "rows without a worker", rows, "")
	s.Run(s.job(ann, "long-3").ID, app.Ending{Lost: "its node went down"})
	_, rows = claim("long-3", p)
	must.Equal(t, "rows at the second attempt", rows, "")
}

// TestRowsThatNeverBeganHadNoAttempt cancels a row that is assigned to a worker but has
// not started; the worker returns it.
func TestRowsThatNeverBeganHadNoAttempt(t *testing.T) {
	s := newSite(t)
	s.SubmitBatch(ann, "b", `{}`)
	j, _, err := s.Runs.Claim(t.Context(), s.job(ann, "b-1").ID, placement.Devices{}, app.ClaimLimit{})
	must.OK(t, err)
	must.OK(t, must.Error2(s.Jobs.Cancel(t.Context(), ann, "b-1")))
	must.OK(t, s.Runs.Return(t.Context(), j.ID, j.Attempts))
	row := s.job(ann, "b-1")
	must.Equal(t, "the row", fmt.Sprint(row.Status, " after ", row.Attempts, " attempts"), "FAILED after 0 attempts")
}
