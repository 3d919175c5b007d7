package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

// batch submits a batch and gives its record.
func (s *site) batch(by app.Caller, name string, rows ...string) view {
	s.t.Helper()
	rec, created, err := s.Jobs.SubmitBatch(s.t.Context(), by, batchSubmission(s.t, name, rows...))
	must(s.t, err)
	if !created {
		s.t.Fatalf("batch %q was there already", name)
	}
	return read(s.t, rec)
}

// end takes a job through an attempt of which only the end is heard, as of
// one that is over at once.
func (s *site) end(name string, e app.Ending) {
	s.t.Helper()
	j, err := s.Runs.Claim(s.t.Context(), s.job(ann, name).ID, nil)
	must(s.t, err)
	e.Outcome.StartedAt = s.now()
	e.Outcome.EndedAt = s.now()
	must(s.t, s.Runs.Finish(s.t.Context(), j.ID, j.Attempts, e))
}

func TestBatchRunsFromAFirstRowWhoseStartWasNotSeen(t *testing.T) {
	s := newSite(t)
	s.batch(ann, "b", `{"steps":1}`, `{"steps":2}`)
	s.end("b-1", broken())
	row := s.job(ann, "b-1")
	if got := s.job(ann, "b"); got.Status != app.Running || !got.StartedAt.Equal(row.StartedAt.Time) {
		t.Errorf("after the first row: %s, started at %v, want RUNNING since %v", got.Status, got.StartedAt, row.StartedAt)
	}
	s.end("b-2", done())
	if got := s.job(ann, "b"); got.Status != app.Failed || !got.StartedAt.Equal(row.StartedAt.Time) {
		t.Errorf("after all rows: %s, started at %v, want FAILED since %v", got.Status, got.StartedAt, row.StartedAt)
	}
}

func TestDeletionOfARowLeavesTheStateOfItsBatch(t *testing.T) {
	s := newSite(t)
	s.batch(ann, "b", `{"steps":1}`, `{"steps":2}`, `{"steps":3}`)
	s.end("b-1", done())
	s.end("b-2", broken())
	must(t, s.Jobs.Delete(t.Context(), ann, "b-2"))
	if got := s.job(ann, "b"); got.Status != app.Running || *got.Counts != (app.Counts{Queued: 1, Completed: 1}) {
		t.Errorf("without its failed row: %s %+v", got.Status, *got.Counts)
	}
	s.end("b-3", broken())
	steps := []struct {
		row, reason string
		counts      app.Counts
		bytes       int64
	}{
		{"b-1", "1 of 1 subjobs failed", app.Counts{Failed: 1}, 0},
		{"b-3", "the subjobs that failed were deleted", app.Counts{}, 0},
	}
	for _, step := range steps {
		must(t, s.Jobs.Delete(t.Context(), ann, step.row))
		got := s.job(ann, "b")
		if got.Status != app.Failed || got.StatusReason != step.reason || *got.Counts != step.counts || *got.ResultBytes != step.bytes {
			t.Errorf("without %s: %s, %q, %+v, %d bytes; want FAILED and %+v", step.row, got.Status, got.StatusReason, *got.Counts, *got.ResultBytes, step)
		}
	}
	must(t, s.Jobs.Delete(t.Context(), ann, "b"))
}

func TestWaitForABatchEndsWithTheCancelOfItsLastRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.batch(ann, "b", `{}`)
		begin := time.Now()
		answer := make(chan view)
		go func() {
			rec, err := s.Jobs.Get(context.Background(), ann, "b", time.Minute)
			var v view
			if err = errors.Join(err, json.Unmarshal(rec, &v)); err != nil {
				t.Error(err)
			}
			answer <- v
		}()
		synctest.Wait() // until it waits
		_, err := s.Jobs.Cancel(t.Context(), ann, "b-1")
		must(t, err)
		if got := <-answer; got.Status != app.Failed || time.Since(begin) >= time.Minute {
			t.Errorf("%s after %v, want FAILED at once", got.Status, time.Since(begin))
		}
	})
}

func TestFaultsOfABatchAreABoundedList(t *testing.T) {
	s := newSite(t)
	many := strings.Repeat(`"",`, 50_000) + `""`
	body := value(t, `{"batchName":"b","type":"echo","settings":[{}],"jobNames":[`+many+`]}`)
	sub := app.BatchSubmission{Name: "b", Type: "echo", Rows: body.Member("settings").Items, RowNames: make([]string, 50_001), Body: body}
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, sub)
	var e *fault.Error
	if !errors.As(err, &e) || len(e.Fields) != 1000 || fmt.Sprint(e.Fields[0].Loc) != "[body jobNames]" {
		t.Errorf("50,001 faulty names: %.300v", err)
	}
}

func TestPageOfLargeRecordsIsShort(t *testing.T) {
	s := newSite(t, `
format = 1
type = "text"
version = "1"
title = "Print a text"
command = ["cat", "{settings_file}"]

[[parameters]]
name = "text"
type = "string"
`)
	large := `{"text":"` + strings.Repeat("x", 17<<16) + `"}`
	rows := slices.Repeat([]string{large}, 7)
	body := value(t, `{"batchName":"b","type":"text","settings":[`+joined(rows)+`]}`)
	_, _, err := s.Jobs.SubmitBatch(t.Context(), ann, app.BatchSubmission{Name: "b", Type: "text", Rows: body.Member("settings").Items, Body: body})
	must(t, err)
	var pages []int
	for q := (app.JobQuery{Batch: "b", Limit: 100}); ; {
		page, err := s.Jobs.List(t.Context(), ann, q)
		must(t, err)
		pages = append(pages, len(page.Records))
		if q.StartKey = page.StartKey; q.StartKey == "" {
			break
		}
	}
	if !slices.Equal(pages, []int{4, 3}) { // four have more than 4 MiB
		t.Errorf("pages of %d records, want 4 and 3", pages)
	}
	page, err := s.Jobs.List(t.Context(), ann, app.JobQuery{Limit: 100, Subjobs: true})
	must(t, err)
	if n := len(read(t, page.Records[0]).Subjobs); n != 6 || !bytes.HasSuffix(page.Records[0], []byte(`"subjobsTruncated":true}`)) {
		t.Errorf("%d subjobs shown of 7 large ones, want 6", n)
	}
}

// storeInTheWay does something before each change, once.
type storeInTheWay struct {
	app.Store
	before func()
}

func (s *storeInTheWay) Update(ctx context.Context, fn func(app.Tx) error) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.Update(ctx, fn)
}

func TestFileDeletedDuringSubmissionIsAFaultOfItsRow(t *testing.T) {
	s := newSite(t)
	u := s.upload(ann, "in.txt", "text")
	inTheWay := &storeInTheWay{Store: s.store}
	service := s.on(inTheWay, echoFile)
	tests := []struct {
		want   string
		submit func() error
	}{
		{"[body settings 1 input]", func() error {
			_, _, err := service.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", `{}`, `{"input":"inputs/in.txt"}`))
			return err
		}},
		{"[body settings input]", func() error {
			_, _, err := service.Jobs.Submit(t.Context(), ann, submission(t, "j", `{"input":"inputs/in.txt"}`))
			return err
		}},
	}
	for _, tt := range tests {
		inTheWay.before = func() { must(t, s.Files.Delete(t.Context(), ann, string(u.ID))) }
		err := tt.submit()
		var e *fault.Error
		if !errors.As(err, &e) || len(e.Fields) != 1 || fmt.Sprint(e.Fields[0].Loc) != tt.want {
			t.Errorf("%v, want a fault at %s", err, tt.want)
		}
		u = s.upload(ann, "in.txt", "text")
	}
}
