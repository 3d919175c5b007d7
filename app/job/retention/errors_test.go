package retention_test

import (
	"errors"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/retention"
	"molrun/app/test/fixture"
)

// TestEveryErrorOfTheStoreIsReported makes each call to the store fail, one after the
// other. What a pass deletes before or after that stays deleted, so it begins with new
// records each time.
func TestEveryErrorOfTheStoreIsReported(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*retention.Keeper) error{
		"retention": func(k *retention.Keeper) error {
			_, err := k.Run(t.Context(), func(app.Expired) {})
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
			for failing := 1; ; failing++ {
				s := keeping(t, retention.Rules{Completed: time.Hour, Uploads: time.Hour, Total: 1, KeepLast: 1, KeepPerUser: true})
				s.retain() // knows the clock from now on
				u := s.Upload(ann, "read.txt", "x")
				s.Upload(ann, "unused.txt", "x")
				s.completed(ann, "old", reading(u), 3)
				_, rows := s.SubmitBatch(ann, "batch", reading(u))
				s.Complete(rows[0], nil)
				s.completed(ann, "last", `{}`, 3)
				s.Advance(2 * time.Hour)

				store := &fixture.FaultyStore{Store: s.Store}
				keeper := retention.New(store, s.Blobs, s.On(store).Jobs, s.options)
				store.Calls, store.Failing = 0, failing
				err := use(keeper)
				s.Close()
				if store.Calls < failing {
					if err != nil || failing == 1 {
						t.Errorf("%d calls of the store, error %v", store.Calls, err)
					}
					return
				}
				if !errors.Is(err, fixture.ErrBroken) {
					t.Errorf("call %d of the store fails, and the error is %v", failing, err)
				}
			}
		})
	}
}
