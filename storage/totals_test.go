package storage

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/notice"
	"molrun/app/test/must"
)

func totals(t *testing.T, s *Store) Totals {
	t.Helper()
	all, err := s.Totals(t.Context())
	must.OK(t, err)
	slices.SortFunc(all.Jobs, func(a, b JobTotal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Executor, b.Executor), cmp.Compare(a.Status, b.Status))
	})
	return all
}

func TestTotalsFollowJobs(t *testing.T) {
	s := openNew(t)
	must.Equal(t, "totals of an empty store", totals(t, s), Totals{})
	job := func(n int, typ, executor string, status app.Status, bytes int64) *app.Job {
		j := testJob(n)
		j.Type, j.Executor, j.Status, j.ResultBytes = typ, executor, status, &bytes
		return j
	}
	batch := job(9, "fold", "local", app.Running, 100)
	batch.Counts = &app.Counts{}
	putJobs(t, s, job(1, "dock", "local", app.Completed, 10), job(2, "dock", "local", app.Completed, 5), job(3, "dock", "slurm", app.Failed, 0), job(4, "fold", "local", app.Running, 0), batch)
	must.Equal(t, "totals", totals(t, s).Jobs, []JobTotal{
		{"dock", "local", app.Completed, app.Usage{Jobs: 2, Bytes: 15}},
		{"dock", "slurm", app.Failed, app.Usage{Jobs: 1}},
		{"fold", "local", app.Running, app.Usage{Jobs: 1}}, // the batch itself is not counted
	})
	update(t, s, func(tx app.Tx) error { return tx.DeleteJob(jobID(1)) })
	putJobs(t, s, job(4, "fold", "local", app.Completed, 7))
	must.Equal(t, "totals after changes", totals(t, s).Jobs, []JobTotal{
		{"dock", "local", app.Completed, app.Usage{Jobs: 1, Bytes: 5}},
		{"dock", "slurm", app.Failed, app.Usage{Jobs: 1}},
		{"fold", "local", app.Completed, app.Usage{Jobs: 1, Bytes: 7}},
	})
}

func TestTotalsOfTheQueueKnowTheOldest(t *testing.T) {
	s := openNew(t)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	waiting := func(n int, executor, email string, priority int, since time.Duration) *app.Job {
		j := testJob(n)
		j.Status, j.Executor, j.Email, j.Priority, j.Private.QueuedAt = app.Queued, executor, email, priority, unit.At(begin.Add(since))
		return j
	}
	held := waiting(6, "local", "bob@lab.example", 0, 0)
	held.Private.Waits = []app.Dependency{{Job: jobID(1)}} // not in the queue
	putJobs(t, s,
		waiting(1, "local", "ann@lab.example", 0, 5*time.Hour), // retried
		waiting(2, "local", "ann@lab.example", 0, 6*time.Hour),
		waiting(3, "local", "bob@lab.example", 0, 3*time.Hour),
		waiting(4, "local", "bob@lab.example", 9, 4*time.Hour),
		waiting(5, "slurm", "bob@lab.example", 0, 7*time.Hour), held)
	must.Equal(t, "queues", totals(t, s).Queues, []QueueTotal{{"local", 4, begin.Add(3 * time.Hour)}, {"slurm", 1, begin.Add(7 * time.Hour)}})
}

func TestTotalsOfTheRest(t *testing.T) {
	s := openNew(t)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	update(t, s, func(tx app.Tx) error {
		for i, at := range []time.Duration{time.Hour, 2 * time.Hour, 0} { // the last one has been delivered
			id := sortid.NewSource(sortid.ID{}).Next(begin.Add(at))
			d := &notice.Delivery{ID: id, Organization: "lab", Target: "https://a.example", State: notice.Pending, NextAt: unit.At(begin.Add(9*time.Hour - at))}
			if i == 2 {
				d.State = notice.Delivered
			}
			if err := tx.PutDelivery(d); err != nil {
				return err
			}
		}
		return tx.PutDrained(&app.Drain{By: "ann"})
	})
	got := totals(t, s)
	if !got.Drained || !got.OldestDelivery.Equal(begin.Add(time.Hour)) {
		t.Errorf("drained %v, the oldest delivery is of %v", got.Drained, got.OldestDelivery)
	}
}
