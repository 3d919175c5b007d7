package app_test

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/job/listing"
	"molrun/app/test/must"
)

func TestPriorityAndMaximumRuntimeAreAcceptedUpToTheirBounds(t *testing.T) {
	s := newSite(t)
	limit := s.submit(ann, "default", `{}`).MaxRuntime
	for i, tt := range []struct {
		by       app.Caller
		priority int
		runtime  int64
		fault    string // location, "" if accepted
	}{
		{by: ann, priority: 0},
		{by: ann, priority: 1, fault: "priority"},
		{by: ann, priority: app.MinPriority},
		{by: ann, priority: app.MinPriority - 1, fault: "priority"},
		{by: chief, priority: 1},
		{by: chief, priority: app.MaxPriority},
		{by: chief, priority: app.MaxPriority + 1, fault: "priority"},
		{by: ann, runtime: 1},
		{by: ann, runtime: limit},
		{by: ann, runtime: limit + 1, fault: "maxRuntimeSeconds"},
		{by: ann, runtime: -1, fault: "maxRuntimeSeconds"},
	} {
		sub := submission(t, fmt.Sprint("job-", i), `{}`)
		sub.Priority, sub.MaxRuntime = tt.priority, tt.runtime
		_, _, err := s.Jobs.Submit(t.Context(), tt.by, sub)
		if tt.fault == "" {
			if err != nil {
				t.Errorf("%+v: %v", tt, err)
			}
			continue
		}
		must.Equal(t, fmt.Sprintf("%+v", tt), faultLocations(t, err), []string{"[body " + tt.fault + "]"})
	}
}

// TestBatchesHaveABoundedNumberOfJobs adds an error to each batch so that none is queued.
func TestBatchesHaveABoundedNumberOfJobs(t *testing.T) {
	s := newSite(t)
	note := fault.Field{Loc: []any{"body", "note"}, Msg: "too long", Type: "value"}
	for n, want := range map[int]bool{0: false, 1: true, 10_000: true, 10_001: false} {
		sub := batchSubmission(t, "b", slices.Repeat([]string{`{}`}, n)...)
		sub.Faults = []fault.Field{note}
		_, _, batch := s.Jobs.SubmitBatch(t.Context(), ann, sub)
		p := pipelineOf(t, "p", make([]app.PipelineJob, n)...)
		for i := range p.Jobs {
			p.Jobs[i] = pipelineStep(fmt.Sprint("step-", i))
		}
		p.Faults = []fault.Field{note}
		_, _, pipeline := s.Jobs.SubmitPipeline(t.Context(), ann, p)
		for member, err := range map[string]error{"settings": batch, "jobs": pipeline} {
			must.Equal(t, fmt.Sprintf("%s of %d jobs are accepted", member, n), !strings.Contains(fmt.Sprint(faultLocations(t, err)), "body "+member), want)
		}
	}
}

// TestReportsOfAnotherAttemptChangeNothing submits late reports about a lost task, before
// and after the next attempt has started.
func TestReportsOfAnotherAttemptChangeNothing(t *testing.T) {
	s := newSite(t)
	ctx := t.Context()
	id := s.submit(ann, "a", `{}`).ID
	s.Run(id, app.Ending{Lost: "its node failed"})
	j, _, err := s.Runs.Claim(ctx, id, placement.Devices{}, app.ClaimLimit{})
	must.OK(t, err)
	must.OK(t, s.Runs.SetHandle(ctx, id, j.Attempts, "second"))
	before := s.storedJob(id)
	for _, attempt := range []int{j.Attempts - 1, j.Attempts + 1} {
		must.OK(t, s.Runs.SetHandle(ctx, id, attempt, "other"))
		must.OK(t, s.Runs.Started(ctx, id, attempt, s.Now(), app.ClusterJob{}))
		must.OK(t, s.Runs.Finish(ctx, id, attempt, success()))
		must.Equal(t, fmt.Sprintf("the job after reports of attempt %d", attempt), s.storedJob(id), before)
	}
	must.OK(t, s.Runs.Started(ctx, id, j.Attempts, s.Now(), app.ClusterJob{}))
	must.Equal(t, "status", s.job(ann, "a").Status, app.Running)
}

// TestListedBatchesCarryABoundedNumberOfRows lists six batches, each with slightly more
// rows than a list shows per batch.
func TestListedBatchesCarryABoundedNumberOfRows(t *testing.T) {
	if testing.Short() {
		t.Skip("submits 6,003 jobs")
	}
	s := newSite(t)
	s.submitBatch(ann, "oldest", `{}`, `{}`)
	rows := slices.Repeat([]string{`{}`}, 1000)
	for i := range 4 {
		s.submitBatch(ann, fmt.Sprint("full-", i), rows...)
	}
	s.submitBatch(ann, "larger", append(rows, `{}`)...)
	page, err := s.Lists.Jobs(t.Context(), ann, listing.Query{Subjobs: true, Limit: 10})
	must.OK(t, err)
	var got []string
	for _, rec := range page.Records {
		j := decode(t, rec)
		truncated := strings.Contains(string(rec), `"subjobsTruncated":true`)
		got = append(got, fmt.Sprint(j.Name, " ", len(j.Subjobs), " ", truncated))
	}
	must.Equal(t, "rows", got, []string{
		"larger 1000 true", "full-3 1000 false", "full-2 1000 false", "full-1 1000 false", "full-0 1000 false", "oldest 0 true",
	})
}

func TestPartOfALogHasItsLength(t *testing.T) {
	s := newSite(t)
	j := s.Start(s.submit(ann, "a", `{}`).ID)
	must.Write(t, filepath.Join(s.Blobs.JobDir(j.ID), "1", "log"), "0123456789")
	for _, tt := range []struct {
		offset, limit int64
		want          string
	}{
		{0, -1, "0123456789"},
		{0, 0, ""},
		{0, 4, "0123"},
		{3, -1, "3456789"},
		{3, 4, "3456"},
		{3, 7, "3456789"},
		{3, 8, "3456789"},
		{10, -1, ""},
		{11, -1, ""},
		{11, 4, ""},
	} {
		log, err := s.Jobs.Log(t.Context(), ann, app.LogRequest{Name: "a", Offset: tt.offset, Limit: tt.limit})
		must.OK(t, err)
		text, err := io.ReadAll(log)
		must.OK(t, err)
		must.OK(t, log.Close())
		if string(text) != tt.want || log.Length != int64(len(tt.want)) || log.Size != 10 {
			t.Errorf("%+v: %q, a length of %d in %d", tt, text, log.Length, log.Size)
		}
	}
	for attempt, code := range map[int]fault.Code{0: "", 1: "", 2: fault.NotFound} {
		log, err := s.Jobs.Log(t.Context(), ann, app.LogRequest{Name: "a", Attempt: attempt})
		if code != "" {
			wantCode(t, fmt.Sprint("attempt ", attempt), err, code)
			continue
		}
		must.OK(t, err)
		must.OK(t, log.Close())
	}
}

// TestGenerationsRiseAlthoughTheClockWentBack restarts the service between two PUTs.
func TestGenerationsRiseAlthoughTheClockWentBack(t *testing.T) {
	s := newSite(t)
	id := s.createUpload()
	first, _, err := s.Files.BeginUpload(t.Context(), id, -1)
	must.OK(t, err)
	must.OK(t, must.Error2(s.Files.FinishUpload(t.Context(), id, app.StoredFile{Generation: first, Size: 5})))
	s.Advance(-day)
	second, _, err := s.newFiles(s.Store, nil).BeginUpload(t.Context(), id, -1)
	must.OK(t, err)
	if second <= first {
		t.Errorf("generation %d follows %d", second, first)
	}
}

func TestBatchIsRefusedIfAJobHasTheNameOfARow(t *testing.T) {
	for i := 1; i <= 3; i++ {
		s := newSite(t)
		s.submit(ann, fmt.Sprint("b-", i), `{}`)
		wantCode(t, fmt.Sprint("row ", i), must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "b", `{}`, `{}`, `{}`))), fault.JobAlreadyExists)
		wantCode(t, "the batch itself", must.Error2(s.Jobs.Get(t.Context(), ann, "b", 0)), fault.NotFound)
	}
}
