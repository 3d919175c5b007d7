package kv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestViewWaitsForTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openAt(t, newPath(t), Options{})
		answered := make(chan error, 1)
		db.OnCommit(func(Commit) { // runs in the writer's goroutine, before it reports the commit as durable
			go func() { answered <- db.View(t.Context(), nothing) }()
			synctest.Wait()
			must.Equal(t, "views that are answered before", len(answered), 0)
		})
		put(t, db, 1)
		must.OK(t, <-answered)
	})
}

func TestViewWaitsForTheCommitItHasSeen(t *testing.T) {
	tests := []struct {
		name  string
		ahead int // commits ahead of what readers see
		waits bool
		then  func(db *DB, cancel context.CancelFunc, c *commit)
		want  error
	}{
		{"on the disk", 0, true, func(_ *DB, _ context.CancelFunc, c *commit) { close(c.done) }, nil},
		{"never on the disk", 0, true, func(db *DB, _ context.CancelFunc, c *commit) { failCommit(db, c) }, fault.Internal},
		{"the caller goes away", 0, true, func(_ *DB, cancel context.CancelFunc, _ *commit) { cancel() }, context.Canceled},
		{"not seen", 1, false, func(*DB, context.CancelFunc, *commit) {}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openAt(t, newPath(t), Options{Fatal: func(error) {}})
				put(t, db, 1)
				c := beginCommit(t, db, tt.ahead)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answer := make(chan error, 1)
				go func() {
					answer <- db.View(ctx, func(tx *Tx) error {
						_, err := readThing(tx, testID(1))
						return err
					})
				}()
				synctest.Wait()
				must.Equal(t, "the View waits", len(answer) == 0, tt.waits)
				tt.then(db, cancel, c)
				if err := <-answer; !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// beginCommit pretends that the last commit, or one ahead of it, is not synced yet.
func beginCommit(t *testing.T, db *DB, ahead int) *commit {
	t.Helper()
	return db.writer.last.beginCommit(commits(t, db) + ahead)
}

func failCommit(db *DB, c *commit) {
	_ = db.health.fail(errors.New("sync failed"))
	close(c.done)
}

// Even the closure's error could depend on the lost commit.
func TestFailedViewHidesItsRefusal(t *testing.T) {
	db := openAt(t, newPath(t), Options{Fatal: func(error) {}})
	put(t, db, 1)
	c := beginCommit(t, db, 0)
	err := db.View(t.Context(), func(*Tx) error {
		failCommit(db, c)
		return fault.Errorf(fault.JobAlreadyExists, "job 1 exists")
	})
	must.Equal(t, "code", fault.CodeOf(err), fault.Internal)
}
