package storage

import (
	"context"
	"fmt"
	"time"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/job/notice"
	"molrun/storage/kv"
)

// Totals holds sums over all organizations. The time to read them does not depend on the
// number of jobs, only on the number of algorithms, organizations and users with waiting
// jobs.
type Totals struct {
	Jobs    []JobTotal
	Queues  []QueueTotal
	Uploads app.Usage

	// OldestDelivery is the creation time of the oldest undelivered notification, or zero
	// if there is none.
	OldestDelivery time.Time
	Drained        bool
}

// JobTotal sums the jobs of one type, executor and status. Batches are not counted, but
// their rows are.
type JobTotal struct {
	Type, Executor string
	Status         app.Status
	app.Usage
}

// QueueTotal counts the jobs that can start on an executor, subject to the scheduling
// order.
type QueueTotal struct {
	Executor string
	Jobs     int
	Oldest   time.Time // submit or retry time of the oldest among the users' next jobs
}

// maxVisited limits how many queue lines and how many deliveries are examined to find the
// oldest.
const maxVisited = 1000

// Totals reads the sums.
func (s *Store) Totals(ctx context.Context) (all Totals, err error) {
	err = s.DB.View(ctx, func(t *kv.Tx) (err error) {
		all = Totals{}
		if all.Jobs, err = jobTotals(t); err != nil {
			return err
		}
		if all.Queues, err = queueTotals(t); err != nil {
			return err
		}
		for _, value := range t.Ascend(sumUploadsTotal, nil) {
			usage, err := readUsage(value)
			if err != nil {
				return fmt.Errorf("%s: %w", sumUploadsTotal, err)
			}
			all.Uploads = all.Uploads.Plus(usage)
		}
		drain, err := newTx(t).Drained()
		if err != nil {
			return err
		}
		all.Drained = drain != nil
		all.OldestDelivery, err = oldestDelivery(newTx(t))
		return err
	})
	return all, err
}

const sumJobsExecutor = "jobs.total.executor"

// jobOfExecutor sums jobs by algorithm, executor, status. Batches are not counted, but
// their rows are.
func jobOfExecutor(j *app.Job) (kv.Key, app.Usage) {
	if j.IsBatch() {
		return nil, app.Usage{}
	}
	return make(kv.Key, 0, 64).Text(j.Type).Text(j.Executor).Letter(statusLetter(j.Status)), j.Usage()
}

func jobTotals(t *kv.Tx) (all []JobTotal, err error) {
	for k, value := range t.Ascend(sumJobsExecutor, nil) {
		var total JobTotal
		for _, part := range []*string{&total.Type, &total.Executor} {
			if *part, k, err = k.CutText(); err != nil {
				return nil, fmt.Errorf("%s: %w", sumJobsExecutor, err)
			}
		}
		for _, s := range app.Statuses {
			if len(k) == 1 && k[0] == statusLetter(s) {
				total.Status = s
			}
		}
		if total.Usage, err = readUsage(value); err != nil {
			return nil, fmt.Errorf("%s: %w", sumJobsExecutor, err)
		}
		all = append(all, total)
	}
	return all, nil
}

// queueTotals adds up the queue lines. For each user and priority it examines the next
// job.
func queueTotals(t *kv.Tx) (all []QueueTotal, err error) {
	visited := 0
	first := t.Walk(indexJobsQueue)
	for k, value := range t.Ascend(sumJobsQueue, nil) {
		executor, _, err := k.CutText()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sumJobsQueue, err)
		}
		usage, err := readUsage(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sumJobsQueue, err)
		}
		if len(all) == 0 || all[len(all)-1].Executor != executor {
			all = append(all, QueueTotal{Executor: executor})
		}
		q := &all[len(all)-1]
		q.Jobs += usage.Queued
		if visited++; visited > maxVisited {
			continue
		}
		first.Seek(k)
		id, err := first.Key.LastID()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", indexJobsQueue, err)
		}
		j, err := readJob(t, id)
		if err != nil {
			return nil, err
		}
		if since := j.Private.QueuedAt.Time; q.Oldest.IsZero() || since.Before(q.Oldest) {
			q.Oldest = since
		}
	}
	return all, nil
}

func oldestDelivery(t tx) (oldest time.Time, err error) {
	visited := 0
	err = t.PendingDeliveries(func(d notice.Due) notice.Visit {
		id, err := sortid.Parse(d.ID)
		if at := id.Time(); err == nil && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		if visited++; visited >= maxVisited {
			return notice.EndVisit
		}
		return notice.NextDue
	})
	return oldest, err
}
