package kv

import (
	"context"
	"fmt"

	"molrun/app/base/sortid"
)

// Check reads the whole database and returns every disagreement as one error:
// pages, records and what follows from them, the high-water mark. Writers wait while it
// reads the pages.
func (db *DB) Check(ctx context.Context) error {
	var found Findings
	if err := db.checkPages(ctx, &found); err != nil {
		return err
	}
	if found.Count > 0 {
		return found.Err() // damaged pages have no readable records
	}
	err := db.View(ctx, func(t *Tx) error {
		return checkRecords(ctx, t, db.Floor(), &found)
	})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	return found.Err()
}

// checkPages holds the write lock: bbolt's free list can't be read while a
// writer changes it.
func (db *DB) checkPages(ctx context.Context, found *Findings) error {
	if err := db.ready(ctx); err != nil {
		return err
	}
	b, err := db.file.Begin(true)
	if err != nil {
		return db.health.beginError(err)
	}
	for err := range b.Check() {
		found.Addf("%v", err)
	}
	return b.Rollback()
}

// checkRecords checks everything above the pages.
func checkRecords(ctx context.Context, t *Tx, floor sortid.ID, found *Findings) error {
	for _, table := range t.schema.Tables {
		if err := table.checkRecords(ctx, t, found); err != nil {
			return err
		}
	}
	checkFloor(t, floor, found)
	checkJournal(t, found)
	return t.schema.Check(ctx, t, found)
}
