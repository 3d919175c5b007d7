package storage

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/test/must"
)

// waitingFor returns a queued job that depends on others.
func waitingFor(n int, waits ...app.Dependency) *app.Job {
	j := testJob(n)
	j.Private.Waits = waits
	return j
}

func finished(n int, status app.Status) *app.Job {
	j := testJob(n)
	j.Status, j.CompletedAt = status, unit.At(testID(99).Time())
	return j
}

func TestDependantsAreFoundByTheWayTheyDepend(t *testing.T) {
	s := openNew(t)
	fell := finished(5, app.Failed)
	fell.Private.Waits, fell.Private.Cause = []app.Dependency{{Job: jobID(1)}, {Job: jobID(2)}}, jobID(2)
	stopped := finished(6, app.Failed)
	stopped.Private.Waits = []app.Dependency{{Job: jobID(1)}}
	unsettled := testJob(2)
	unsettled.Private.Unpropagated = true
	putJobs(t, s, testJob(1), unsettled, waitingFor(3, app.Dependency{Job: jobID(1)}, app.Dependency{Job: jobID(2), Any: true}),
		waitingFor(4, app.Dependency{Job: jobID(1)}), fell, stopped)
	view(t, s, func(tx app.Tx) error {
		for _, tt := range []struct {
			job  int
			how  app.Dependence
			want int
		}{
			{1, app.WaitsForSuccess, 2},
			{1, app.WaitsForEnd, 0},
			{1, app.FailedWith, 0},
			{2, app.WaitsForSuccess, 0},
			{2, app.WaitsForEnd, 1},
			{2, app.FailedWith, 1},
		} {
			must.Equal(t, fmt.Sprintf("%c of job %d", tt.how, tt.job), len(collect(t, tx.Dependants(jobID(tt.job), tt.how))), tt.want)
		}
		var queued []app.JobID
		must.OK(t, tx.Queue("local", func(w app.Waiting) app.Visit {
			queued = append(queued, w.ID)
			return app.NextJob
		}))
		must.Equal(t, "jobs in the queue, which wait for nobody", len(queued), 2)
		if id, err := tx.Unpropagated(); err != nil || id != jobID(2) {
			t.Errorf("unsettled: %s, %v", id, err)
		}
		return nil
	})
}

func TestCheckFindsJobsThatWaitForEver(t *testing.T) {
	fell := finished(9, app.Failed)
	fell.Private.Waits, fell.Private.Cause = []app.Dependency{{Job: jobID(1)}}, jobID(1)
	spared, toldSoon := finished(2, app.Failed), finished(2, app.Failed)
	spared.Private.KeepsDependants, toldSoon.Private.Unpropagated = true, true
	for name, tt := range map[string]struct {
		jobs    []*app.Job
		found   string
		repairs bool
	}{
		"queued":           {[]*app.Job{testJob(1), waitingFor(9, app.Dependency{Job: jobID(1)})}, "", true},
		"completed":        {[]*app.Job{finished(1, app.Completed), waitingFor(9, app.Dependency{Job: jobID(1)})}, "is COMPLETED, but its status was not propagated to a dependent job", true},
		"failed":           {[]*app.Job{finished(1, app.Failed), waitingFor(9, app.Dependency{Job: jobID(1)})}, "is FAILED, but", true},
		"failed and any":   {[]*app.Job{finished(1, app.Failed), waitingFor(9, app.Dependency{Job: jobID(1), Any: true})}, "is FAILED, but", true},
		"stopped alone":    {[]*app.Job{spared, waitingFor(9, app.Dependency{Job: jobID(2)})}, "", true},
		"told soon":        {[]*app.Job{toldSoon, waitingFor(9, app.Dependency{Job: jobID(2)})}, "", true},
		"tried again":      {[]*app.Job{testJob(1), fell}, "is QUEUED, but", true},
		"failed with it":   {[]*app.Job{finished(1, app.Failed), fell}, "", true},
		"failed, now gone": {[]*app.Job{fell}, "", true},
		"gone":             {[]*app.Job{waitingFor(9, app.Dependency{Job: jobID(1)})}, "a job waits for job " + jobIDText(1) + ", which does not exist", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := openAt(t, path, Options{})
			putJobs(t, s, tt.jobs...)
			must.OK(t, s.Close())
			if found := problems(t, path); !strings.Contains(found, tt.found) || tt.found == "" && found != "" {
				t.Errorf("found %q, want %q", found, tt.found)
			}
			report, err := Repair(t.Context(), path, Options{})
			must.OK(t, err)
			must.Equal(t, "nothing is left after the repair", report.Count == 0, tt.repairs)
		})
	}
}
