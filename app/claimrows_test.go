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

// rowNumbers claims further rows for a pilot, and names them without their batch.
func (s *site) rowNumbers(first *app.Job, p app.ClaimLimit) string {
	s.t.Helper()
	rows, err := s.Runs.ClaimRows(s.t.Context(), first, p)
	must.OK(s.t, err)
	var names []string
	for _, j := range rows {
		names = append(names, j.Name)
		stored := s.storedJob(j.ID)
		if !stored.Private.Claimed || stored.Private.Pilot != p.Pilot || stored.Private.Token == "" || stored.Attempts != 1 || stored.Status != app.Queued {
			s.t.Errorf("row %s: %+v", j.Name, stored.Private)
		}
		must.Equal(s.t, fmt.Sprintf("row %s has the CPUs", j.Name), stored.Private.Devices.CPUs, first.Private.Devices.CPUs)
	}
	return strings.Join(names, " ")
}

// A pilot gets rows of one batch in their order, of the same algorithm and needs, for as
// long as they may take; and none of anybody else, none that was tried before or waits.
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
	p := app.ClaimLimit{Pilot: "P", Rows: 3, Seconds: 1000}
	first := claim(1)
	must.Equal(t, "rows without a history", s.rowNumbers(first, p), "")
	must.Equal(t, "a row without others is in the pilot", s.storedJob(first.ID).Private.Pilot, "")
	for n := 2; n <= 4; n++ {
		s.Run(row(n), success()) // a minute each
	}
	s.cancel(ann, "b-5")
	lost := app.Ending{Lost: "its node went down"}
	s.Run(row(6), lost) // it waits for its second attempt
	if j := s.job(ann, "b-6"); j.Status != app.Queued || j.Attempts != 1 {
		t.Fatalf("%s after %d attempts", j.Status, j.Attempts)
	}
	must.Equal(t, "rows for 150 s", s.rowNumbers(first, app.ClaimLimit{Pilot: "P", Rows: 3, Seconds: 150}), "b-7 b-8")
	must.Equal(t, "the first row is in the pilot", s.storedJob(first.ID).Private.Pilot, "P")
	must.Equal(t, "three rows", s.rowNumbers(first, p), "b-9 b-10 b-11")
	must.OK(t, s.Runs.Finish(t.Context(), first.ID, 1, success()))
	if done := s.storedJob(first.ID); done.Private.Pilot != "" || done.Status != app.Completed {
		t.Errorf("after its end: %+v", done.Private)
	}
	if got := s.rowNumbers(first, p); got != "b-12" { // also when the first has ended
		t.Errorf("the rest is %q", got)
	}
	must.Equal(t, "a job that has ended is in a pilot", s.storedJob(first.ID).Private.Pilot, "")
	must.Equal(t, "rows then", s.rowNumbers(first, p), "")
}

// One claim takes a short row and those for its pilot, and leaves alone what is no such row.
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
			if stored := s.storedJob(r.ID); stored.Private.Pilot != p.Pilot || !stored.Private.Claimed || stored.Attempts != 1 {
				t.Errorf("row %s: %+v", r.Name, stored.Private)
			}
		}
		return j, strings.Join(names, " ")
	}
	p := app.ClaimLimit{Pilot: "P", Rows: 10, Seconds: 4, MaxRowSeconds: 2}
	submit("b")
	first, rows := claim("b-1", p)
	if pilot := s.storedJob(first.ID).Private.Pilot; rows != "b-2 b-3" || pilot != "P" {
		t.Errorf("for 4 s of 2 s each it got %q, and is in the pilot %q", rows, pilot)
	}
	last, rows := claim("b-4", p)
	if pilot := s.storedJob(last.ID).Private.Pilot; rows != "" || pilot != "" || !last.Private.Claimed {
		t.Errorf("the last row got %q, and is in the pilot %q", rows, pilot)
	}
	if _, _, err := s.Runs.Claim(t.Context(), s.job(ann, "b-2").ID, placement.Devices{}, p); !errors.Is(err, fault.NotFound) {
		t.Errorf("a row of a pilot is claimed again: %v", err)
	}
	submit("long")
	_, rows = claim("long-1", app.ClaimLimit{Pilot: "P", Rows: 10, Seconds: 100, MaxRowSeconds: 1.9})
	must.Equal(t, "rows beside one that takes longer than short ones", rows, "")
	_, rows = claim("long-2", app.ClaimLimit{})
	must.Equal(t, "rows without a pilot", rows, "")
	s.Run(s.job(ann, "long-3").ID, app.Ending{Lost: "its node went down"})
	_, rows = claim("long-3", p)
	must.Equal(t, "rows at the second attempt", rows, "")
}

// TestRowsThatNeverBeganHadNoAttempt cancels a row that waits for its turn in a pilot, which gives it back.
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
