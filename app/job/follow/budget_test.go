package follow

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// TestNothingListensForAStreamThatFailed makes each store call fail in turn.
func TestNothingListensForAStreamThatFailed(t *testing.T) {
	s := fixture.New(t, app.Options{})
	accounts := access.New(s.Store, s.Blobs, s.Now)
	ann := app.Caller{Organization: "lab", Email: "ann@lab.example", Rights: apikey.Member.Rights()}
	s.Submit(ann, "a", "{}")
	for name, open := range map[string]func(*Follower) (*Stream, error){
		"jobs": func(f *Follower) (*Stream, error) { return f.Jobs(t.Context(), ann, Query{After: &Position{}}) },
		"one job": func(f *Follower) (*Stream, error) {
			return f.Job(t.Context(), ann, JobQuery{Name: "a", After: &Position{}})
		},
	} {
		fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
			store := &fixture.FaultyStore{Store: s.Store}
			f := New(store, s.WithStore(store), accounts)
			arm(store)
			stream, err := open(f)
			if err == nil {
				stream.Close()
			}
			must.Equal(t, name+": open streams", f.open.Load(), 0)
			return err
		})
	}
}

func TestTheBudgetIsTakenWholeOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Follower{budget: newBudget()}
		if f.takeBudget(math.MaxUint64) || !f.takeBudget(eventsAtOnce) || f.takeBudget(1) {
			t.Error("the initial budget is not exactly the burst size")
		}
		time.Sleep(time.Second)
		if f.takeBudget(eventsPerSecond+1) || !f.takeBudget(eventsPerSecond) || f.takeBudget(1) {
			t.Error("after a second there is not what may come in one, or more")
		}
		time.Sleep(24 * time.Hour)
		if !f.takeBudget(eventsAtOnce) || f.takeBudget(1) {
			t.Error("unused budget of a day accumulates")
		}
	})
}

func TestPlacesHaveOneForm(t *testing.T) {
	for _, text := range []string{"0-00000000", "17-0badcafe", "17-0badcafe.2.1000", "17-0badcafe.0.0"} {
		if _, err := ParsePlace(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	p, err := ParsePlace("17-0badcafe.2.1000")
	if err != nil || p.Event.Number != 17 || p.Attempt != 2 || p.Offset != 1000 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"", ".", "17-0badcafe.", "17-0badcafe.1", "17-0badcafe.1.", "17-0badcafe.-1.2", "17-0badcafe.1.-2", "17-0badcafe.1.2.3", "17-0badcafe.99999999999.1"} {
		if p, err := ParsePlace(text); err == nil {
			t.Errorf("%q reads as %+v", text, p)
		}
	}
}
