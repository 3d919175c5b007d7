package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/job/listing"
	"molrun/app/test/must"
)

func TestRefusedBatchCreatesNothing(t *testing.T) {
	s := newSite(t)
	rows := slices.Repeat([]string{`{"steps":1}`}, 1000)
	rows[17] = `{"steps":0}`
	must.Equal(t, "faults of a bad row", faultLocations(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", rows...)))), []string{"[body settings 17 steps]"})
	page, err := s.Lists.Jobs(t.Context(), ann, listing.Query{Selection: listing.Selection{WholeOrganization: true}, Limit: 10})
	must.OK(t, err)
	must.Equal(t, "jobs exist after a rejected batch", len(page.Records), 0)
}

func TestAtMostAThousandFaultsOfABatchAreReported(t *testing.T) {
	s := newSite(t)
	names := `""` + strings.Repeat(`,""`, 50_000)
	body := parseJSON(t, `{"batchName":"b","type":"echo","settings":[{}],"jobNames":[`+names+`]}`)
	sub := app.BatchSubmission{Name: "b", Type: "echo", Rows: body.Member("settings").Items, RowNames: make([]string, 50_001), Body: body}
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, sub)
	if got := faultLocations(t, err); len(got) != 1000 || got[0] != "[body jobNames]" {
		t.Errorf("%d faults for 50,001 empty names, the first at %s; want 1000 from [body jobNames]", len(got), got[0])
	}
}

// wantBatch checks the status and counts of batch "b".
func (s *site) wantBatch(when string, status app.Status, counts app.Counts) {
	s.t.Helper()
	if got := s.job(ann, "b"); got.Status != status || *got.Counts != counts {
		s.t.Errorf("%s the batch is %s %+v, want %s %+v", when, got.Status, *got.Counts, status, counts)
	}
}

func TestBatchStatusAndCountsFollowItsRows(t *testing.T) {
	s := newSite(t)
	sub := batchSubmission(t, "b", `{"steps":1}`, `{"steps":2}`, `{"steps":3}`)
	rec, created, err := s.Jobs.SubmitBatch(t.Context(), ann, sub)
	must.OK(t, err)
	if got := decode(t, rec); !created || got.Status != app.Queued || *got.Counts != (app.Counts{Queued: 3}) || got.Settings != nil {
		t.Fatalf("new batch: %s", rec)
	}
	if _, created, err = s.Jobs.SubmitBatch(t.Context(), ann, sub); err != nil || created {
		t.Errorf("repeated submission: created %v, error %v", created, err)
	}
	row := func(i int) app.JobID { return s.job(ann, fmt.Sprintf("b-%d", i)).ID }
	j, _, err := s.Runs.Claim(t.Context(), row(2), placement.Devices{}, app.ClaimLimit{})
	must.OK(t, err)
	s.wantBatch("after a claim", app.Queued, app.Counts{Queued: 3})
	must.OK(t, s.Runs.Started(t.Context(), j.ID, 1, s.Now(), app.ClusterJob{}))
	s.wantBatch("after the first start", app.Running, app.Counts{Queued: 2, Running: 1})
	must.OK(t, s.Runs.Finish(t.Context(), j.ID, 1, failure()))
	s.Run(row(1), success())
	s.wantBatch("before the last row", app.Running, app.Counts{Queued: 1, Completed: 1, Failed: 1})
	s.Run(row(3), success())
	s.wantBatch("after the last row", app.Failed, app.Counts{Completed: 2, Failed: 1})
	s.retry(ann, "b")
	s.wantBatch("after a retry", app.Queued, app.Counts{Queued: 1, Completed: 2})
	s.Run(row(2), success())
	s.wantBatch("after the retried row", app.Completed, app.Counts{Completed: 3})
	must.Equal(t, "resultBytes", *s.job(ann, "b").ResultBytes, 21)
}

// runUnseen runs an attempt so short that only its end is reported, not its start.
func (s *site) runUnseen(name string, e app.Ending) {
	s.t.Helper()
	j, _, err := s.Runs.Claim(s.t.Context(), s.job(ann, name).ID, placement.Devices{}, app.ClaimLimit{})
	must.OK(s.t, err)
	e.Outcome.StartedAt, e.Outcome.EndedAt = s.Now(), s.Now()
	must.OK(s.t, s.Runs.Finish(s.t.Context(), j.ID, j.Attempts, e))
}

func TestBatchStartsWithItsFirstRowEvenIfOnlyItsEndIsReported(t *testing.T) {
	s := newSite(t)
	s.submitBatch(ann, "b", `{"steps":1}`, `{"steps":2}`)
	s.runUnseen("b-1", failure())
	start := s.job(ann, "b-1").StartedAt.Time
	if got := s.job(ann, "b"); got.Status != app.Running || !got.StartedAt.Equal(start) {
		t.Errorf("after the first row: %s, started at %v, want RUNNING since %v", got.Status, got.StartedAt, start)
	}
	s.runUnseen("b-2", success())
	if got := s.job(ann, "b"); got.Status != app.Failed || !got.StartedAt.Equal(start) {
		t.Errorf("after all rows: %s, started at %v, want FAILED since %v", got.Status, got.StartedAt, start)
	}
}

// The nodes of a cluster can report rows in an order other than that in which they ran.
func TestTimesOfABatchAreThoseOfItsRows(t *testing.T) {
	s := newSite(t)
	s.submitBatch(ann, "b", `{"steps":1}`, `{"steps":2}`, `{"steps":3}`)
	now := s.Now()
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for i, ran := range [][2]int{{3, 4}, {1, 9}, {2, 5}} {
		j, _, err := s.Runs.Claim(t.Context(), s.job(ann, fmt.Sprint("b-", i+1)).ID, placement.Devices{}, app.ClaimLimit{})
		must.OK(t, err)
		e := success()
		e.Outcome.StartedAt, e.Outcome.EndedAt = at(ran[0]), at(ran[1])
		must.OK(t, s.Runs.Finish(t.Context(), j.ID, 1, e))
	}
	if b := s.job(ann, "b"); !b.StartedAt.Equal(s.job(ann, "b-2").StartedAt.Time) || !b.CompletedAt.Equal(s.job(ann, "b-2").CompletedAt.Time) {
		t.Errorf("the batch ran from %v to %v, want the times of its second row", b.StartedAt, b.CompletedAt)
	}
}

func TestCancelAndDeleteOfABatchApplyToAllRows(t *testing.T) {
	s := newSite(t)
	s.submitBatch(ann, "b", `{}`, `{"steps":2}`)
	wantCode(t, "delete a queued batch", s.Jobs.Delete(t.Context(), ann, "b"), fault.JobNotFinished)
	rec, err := s.Jobs.Cancel(t.Context(), ann, "b")
	must.OK(t, err)
	if got := decode(t, rec); got.Status != app.Failed || *got.Counts != (app.Counts{Failed: 2}) {
		t.Errorf("after cancel: %s", rec)
	}
	must.OK(t, s.Jobs.Delete(t.Context(), ann, "b"))
	for _, name := range []string{"b", "b-1", "b-2"} {
		wantCode(t, "get "+name+" after delete", must.Error2(s.Jobs.Get(t.Context(), ann, name, 0)), fault.NotFound)
	}
	s.submitBatch(ann, "b", `{"steps":3}`, `{}`) // the names are available again
}

func TestDeletingARowKeepsTheStatusOfItsBatch(t *testing.T) {
	s := newSite(t)
	s.submitBatch(ann, "b", `{"steps":1}`, `{"steps":2}`, `{"steps":3}`)
	s.runUnseen("b-1", success())
	s.runUnseen("b-2", failure())
	must.OK(t, s.Jobs.Delete(t.Context(), ann, "b-2"))
	s.wantBatch("without its failed row", app.Running, app.Counts{Queued: 1, Completed: 1})
	s.runUnseen("b-3", failure())
	for _, step := range []struct {
		row, reason string
		counts      app.Counts
	}{
		{"b-1", "1 of 1 jobs failed", app.Counts{Failed: 1}},
		{"b-3", "the jobs that failed were deleted", app.Counts{}},
	} {
		must.OK(t, s.Jobs.Delete(t.Context(), ann, step.row))
		s.wantBatch("without "+step.row, app.Failed, step.counts)
		if got := s.job(ann, "b"); got.StatusReason != step.reason || *got.ResultBytes != 0 {
			t.Errorf("without %s: reason %q, %d bytes; want %q, 0 bytes", step.row, got.StatusReason, *got.ResultBytes, step.reason)
		}
	}
	must.OK(t, s.Jobs.Delete(t.Context(), ann, "b"))
}
