package kv

import (
	"context"
	"fmt"

	"molrun/app/base/sortid"
)

// Check reads the whole database and returns every inconsistency as one error: in pages,
// records, derived data and the high-water mark. Writers wait while it reads the pages.
func (db *DB) Check(ctx context.Context) error {
	var found ProblemList
	if err := db.checkPages(ctx, &found); err != nil {
		return err
	}
	if found.Count > 0 {
		return found.Err() // records on damaged pages are unreadable
	}
	err := db.View(ctx, func(t *Tx) error {
		return checkRecords(ctx, t, db.HighWaterMark(), &found)
	})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	return found.Err()
}

// checkPages holds the write lock because bbolt's free list cannot be read while a writer
// changes it.
func (db *DB) checkPages(ctx context.Context, found *ProblemList) error {
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

// checkRecords checks everything above the page level.
func checkRecords(ctx context.Context, t *Tx, highWaterMark sortid.ID, found *ProblemList) error {
	for _, table := range t.schema.Tables {
		if err := table.checkRecords(ctx, t, found); err != nil {
			return err
		}
	}
	checkHighWaterMark(t, highWaterMark, found)
	checkJournal(t, found)
	return t.schema.Check(ctx, t, found)
}
