package retention_test

import (
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/retention"
	"molrun/app/test/fixture"
)

// TestEveryErrorOfTheStoreIsReported makes each store call fail in turn. Deletions before
// or after the failing call take effect, so each case starts with new records.
func TestEveryErrorOfTheStoreIsReported(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*retention.Keeper) error{
		"retention": func(k *retention.Keeper) error {
			_, err := k.DeleteExpired(t.Context(), func(app.Expired) {})
			return err
		},
		"dry run": func(k *retention.Keeper) error {
			_, err := k.Prune(t.Context(), retention.PruneRequest{EndedBefore: time.Now().Add(365 * day), DryRun: true})
			return err
		},
		"report": func(k *retention.Keeper) error {
			_, err := k.Report(t.Context(), "", retention.ByUser)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
				s := keeping(t, retention.Rules{Completed: time.Hour, Uploads: time.Hour, Total: 1, KeepLast: 1, KeepPerUser: true})
				defer s.Close()
				s.retain() // so that the clock is trusted afterwards
				u := s.Upload(ann, "read.txt", "x")
				s.Upload(ann, "unused.txt", "x")
				s.completed(ann, "old", reading(u), 3)
				_, rows := s.SubmitBatch(ann, "batch", reading(u))
				s.Complete(rows[0], nil)
				s.completed(ann, "last", `{}`, 3)
				s.Advance(2 * time.Hour)
				store := &fixture.FaultyStore{Store: s.Store}
				keeper := retention.New(store, s.Blobs, s.WithStore(store).Jobs, s.options)
				arm(store)
				return use(keeper)
			})
		})
	}
}
