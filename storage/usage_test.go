package storage

import (
	"testing"
	"time"

	"molrun/app"
	"molrun/app/test/must"
)

func TestOrganizationWithOnlyAnEmptyBatchIsListed(t *testing.T) {
	s := openNew(t)
	batch := testJob(1)
	batch.Organization, batch.Status, batch.Counts = "firm", app.Completed, &app.Counts{}
	putJobs(t, s, batch)
	view(t, s, func(tx app.Tx) error {
		got, err := tx.Organizations()
		must.Equal(t, "organizations, in which retention has to find the batch", got, []string{"firm"})
		return err
	})
}

func TestStampSurvivesAReopening(t *testing.T) {
	path := newPath(t)
	s := openAt(t, path, Options{})
	want := time.Date(2026, 11, 20, 10, 40, 0, 123456789, time.UTC)
	view(t, s, func(tx app.Tx) error {
		if at, err := tx.Stamp(); err != nil || !at.IsZero() {
			t.Errorf("before: %v, %v", at, err)
		}
		return nil
	})
	update(t, s, func(tx app.Tx) error { return tx.PutStamp(want) })
	must.OK(t, s.Close())
	view(t, openAt(t, path, Options{}), func(tx app.Tx) error {
		if at, err := tx.Stamp(); err != nil || !at.Equal(want) {
			t.Errorf("%v, %v, want %v", at, err, want)
		}
		return nil
	})
}
