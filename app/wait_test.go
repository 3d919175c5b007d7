package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

// waitFor gets a job in the background, waiting up to a minute for a change. It returns
// once the request is waiting.
func (s *site) waitFor(name string) <-chan shownJob {
	answer := make(chan shownJob, 1)
	go func() {
		rec, err := s.Jobs.Get(context.Background(), ann, name, time.Minute)
		var j shownJob
		if err = errors.Join(err, json.Unmarshal(rec, &j)); err != nil {
			s.t.Error(err)
		}
		answer <- j
	}()
	synctest.Wait()
	return answer
}

func TestWaitReturnsWhenTheStatusChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		j := s.submit(ann, "a", `{}`)
		answer := s.waitFor("a")
		must.OK(t, must.Error3(s.Runs.Claim(t.Context(), j.ID, placement.Devices{}, app.ClaimLimit{})))
		synctest.Wait()
		must.Equal(t, "answers before the status has changed", len(answer), 0)
		must.OK(t, s.Runs.Started(t.Context(), j.ID, 1, s.Now(), app.ClusterJob{}))
		must.Equal(t, "the answer", (<-answer).Status, app.Running)
	})
}

func TestWaitOnABatchReturnsWhenItsLastRowIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.submitBatch(ann, "b", `{}`)
		begin := time.Now()
		answer := s.waitFor("b")
		s.cancel(ann, "b-1")
		if got := <-answer; got.Status != app.Failed || time.Since(begin) >= time.Minute {
			t.Errorf("the answer is %s after %v, want FAILED at once", got.Status, time.Since(begin))
		}
	})
}
