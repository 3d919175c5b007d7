package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/placement"
)

// rowNumbers claims further rows for a pilot, and names them without their batch.
func (s *site) rowNumbers(first *app.Job, p app.Portion) string {
	s.t.Helper()
	rows, err := s.Runs.ClaimRows(s.t.Context(), first, p)
	must(s.t, err)
	var names []string
	for _, j := range rows {
		names = append(names, j.Name)
		stored := s.storedJob(j.ID)
		if !stored.Private.Claimed || stored.Private.Pilot != p.Pilot || stored.Private.Token == "" || stored.Attempts != 1 || stored.Status != app.Queued {
			s.t.Errorf("row %s: %+v", j.Name, stored.Private)
		}
		if !slices.Equal(stored.Private.Devices.CPUs, first.Private.Devices.CPUs) {
			s.t.Errorf("row %s has the CPUs %v", j.Name, stored.Private.Devices.CPUs)
		}
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
		j, _, err := s.Runs.Claim(t.Context(), row(n), placement.Devices{CPUs: []int{3}}, app.Portion{})
		must(t, err)
		return j
	}
	p := app.Portion{Pilot: "P", Rows: 3, Seconds: 1000}
	first := claim(1)
	if got := s.rowNumbers(first, p); got != "" {
		t.Errorf("without a history it got %q", got)
	}
	if pilot := s.storedJob(first.ID).Private.Pilot; pilot != "" {
		t.Errorf("a row without others is in the pilot %q", pilot)
	}
	for n := 2; n <= 4; n++ {
		s.run(row(n), success()) // a minute each
	}
	_, err := s.Jobs.Cancel(t.Context(), ann, "b-5")
	must(t, err)
	lost := app.Ending{Lost: "its node went down"}
	s.run(row(6), lost) // it waits for its second attempt
	if j := s.job(ann, "b-6"); j.Status != app.Queued || j.Attempts != 1 {
		t.Fatalf("%s after %d attempts", j.Status, j.Attempts)
	}
	if got := s.rowNumbers(first, app.Portion{Pilot: "P", Rows: 3, Seconds: 150}); got != "b-7 b-8" {
		t.Errorf("for 150 s it got %q", got)
	}
	if pilot := s.storedJob(first.ID).Private.Pilot; pilot != "P" {
		t.Errorf("the first row is in the pilot %q", pilot)
	}
	if got := s.rowNumbers(first, p); got != "b-9 b-10 b-11" {
		t.Errorf("three rows are %q", got)
	}
	must(t, s.Runs.Finish(t.Context(), first.ID, 1, success()))
	if done := s.storedJob(first.ID); done.Private.Pilot != "" || done.Status != app.Completed {
		t.Errorf("after its end: %+v", done.Private)
	}
	if got := s.rowNumbers(first, p); got != "b-12" { // also when the first has ended
		t.Errorf("the rest is %q", got)
	}
	if s.storedJob(first.ID).Private.Pilot != "" {
		t.Error("a job that has ended is in a pilot")
	}
	if got := s.rowNumbers(first, p); got != "" {
		t.Errorf("then there was %q", got)
	}
}
