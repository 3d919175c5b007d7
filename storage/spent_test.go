package storage

import (
	"fmt"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/unit"
	"molrun/app/job/quota"
	"molrun/app/test/must"
)

// spentIn adds up the consumption of an organization in a period, or of all organizations
// if organization is "".
func spentIn(t *testing.T, s *Store, organization string, from, until time.Time) (sum quota.Spent) {
	t.Helper()
	view(t, s, func(tx app.Tx) error {
		sum = quota.Spent{}
		for _, share := range collect(t, tx.Spent(organization, from, until)) {
			sum.Add(share.Spent)
		}
		return nil
	})
	return sum
}

var ever = [2]time.Time{time.Unix(0, 0), time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}

func wantSpent(t *testing.T, s *Store, organization string, want quota.Spent) {
	t.Helper()
	must.Equal(t, "spent by "+organization, spentIn(t, s, organization, ever[0], ever[1]), want)
}

// ended returns a completed job that ran for a second on two CPUs and a GPU.
func ended(n int) *app.Job {
	j := testJob(n)
	j.Status, j.CompletedAt = app.Completed, j.CreatedAt
	size := int64(10)
	j.ResultBytes = &size
	j.Metrics = &app.Metrics{RunSeconds: 1, CPUSeconds: 1.5}
	j.Private.Needs = placement.Resources{CPUs: 2, GPUs: 1}
	j.Private.Spent.Add(1, 1.5, j.CompletedAt)
	return j
}

func timesEnded(n int64) quota.Spent {
	return quota.Spent{Completed: n, Attempts: n, RunMillis: 1000 * n, CPUMillis: 1500 * n, BookedMillis: 2000 * n, GPUMillis: 1000 * n, ResultBytes: 10 * n}
}

func TestWhatIsDeletedStaysCountedAlsoByARepair(t *testing.T) {
	path := newPath(t)
	s := openAt(t, path, Options{})
	putJobs(t, s, ended(1), ended(2))
	update(t, s, func(tx app.Tx) error { return tx.DeleteJob(jobID(1)) })
	must.OK(t, s.Close())
	for _, damage := range []func(*bolt.Tx) error{
		func(tx *bolt.Tx) error { return bucketOf(tx, indexJobsName).Delete(firstKey(tx, indexJobsName)) },
		func(*bolt.Tx) error { return nil },
	} {
		edit(t, path, damage)
		report, err := Repair(t.Context(), path, Options{})
		if err != nil || report.Count > 0 {
			t.Fatalf("repair: %+v, %v", report, err)
		}
		s = openAt(t, path, Options{})
		wantSpent(t, s, "lab", timesEnded(2))
		must.OK(t, s.Close())
	}
	edit(t, path, func(tx *bolt.Tx) error {
		return bucketOf(tx, spentByJobs).Delete(firstKey(tx, spentByJobs))
	})
	_, err := Repair(t.Context(), path, Options{})
	must.OK(t, err)
	s = openAt(t, path, Options{})
	wantSpent(t, s, "lab", timesEnded(1)) // the records prove this consumption
}

func TestSpentReadsOnlyTheDaysAskedFor(t *testing.T) {
	s := openNew(t)
	const day = 24 * time.Hour
	begin := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	n := 0
	for _, organization := range []string{"firm", "lab", "labs"} {
		for d := range 5 {
			n++
			j := ended(n)
			j.Organization, j.CompletedAt = organization, unit.At(begin.Add(time.Duration(d)*day))
			putJobs(t, s, j)
		}
	}
	for _, tt := range []struct {
		organization string
		from, until  int // days
		want         int64
	}{
		{"lab", 0, 5, 5},
		{"lab", 1, 3, 2},
		{"lab", 1, 1, 0},
		{"lab", 5, 9, 0},
		{"la", 0, 5, 0},
		{"", 0, 5, 15},
		{"", 4, 5, 3},
		{"", 2, 4, 6},
	} {
		got := spentIn(t, s, tt.organization, begin.Add(time.Duration(tt.from)*day), begin.Add(time.Duration(tt.until)*day))
		must.Equal(t, fmt.Sprintf("%q, days %d to %d", tt.organization, tt.from, tt.until), got, timesEnded(tt.want))
	}
	view(t, s, func(tx app.Tx) error {
		for range tx.Spent("", ever[0], ever[1]) {
			break // an iterator that ignored the break would panic
		}
		return nil
	})
}
