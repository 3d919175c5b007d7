package storage

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/test/must"
)

// gist returns the part of a job that event filters use.
func gist(j *app.Job) string {
	if j == nil {
		return "none"
	}
	return fmt.Sprintf("%q %q %q %q %q %q %q %v %q %v", j.ID, j.Name, j.Organization, j.Email, j.Type, j.Status, j.Note, slices.Sorted(maps.Keys(j.Tags)), j.Private.Batch, j.Batch)
}

// TestEveryChangeHasAnEvent makes random changes. A listener that receives all events
// knows the final state of each job, and the stored events match the delivered ones.
func TestEveryChangeHasAnEvent(t *testing.T) {
	for seed := range uint64(8) {
		s := openNew(t)
		known := map[app.JobID]*app.Job{}
		last := map[string]events.ID{}
		var told []*app.Event
		s.OnEvents(func(all []events.Entry) { // runs in the writer's goroutine
			for _, entry := range all {
				e := entry.Attached.(*app.Event)
				e.ID = entry.ID
				told = append(told, e)
				if want := last[entry.Owner].Number + 1; entry.ID.Number != want || entry.Owner != e.Job.Organization {
					t.Errorf("seed %d: event %v of %q, want number %d", seed, entry.ID, entry.Owner, want)
				}
				last[entry.Owner] = entry.ID
				switch e.Kind {
				case app.EventJobDeleted:
					delete(known, e.Job.ID)
				case app.EventJobChanged:
					known[e.Job.ID] = e.Job
				}
			}
		})
		sim := &simulation{r: rand.New(rand.NewPCG(seed, 0)), model: newModel()}
		for range 150 {
			update(t, s, sim.step)
		}
		for id, j := range sim.jobs {
			heard := known[id]
			if heard == nil && j.Private.Batch != "" {
				continue // the row has not changed since its creation, which has no event
			}
			if gist(heard) != gist(j) || j.IsBatch() && *heard.Counts != *j.Counts {
				t.Errorf("seed %d: events say\n%s, want\n%s", seed, gist(heard), gist(j))
			}
			delete(known, id)
		}
		if len(known) > 0 {
			t.Errorf("seed %d: %d jobs that are gone were not told to be deleted", seed, len(known))
		}
		sameAsStored(t, s, told)
	}
}

// sameAsStored compares delivered events with the stored ones.
func sameAsStored(t *testing.T, s *Store, told []*app.Event) {
	t.Helper()
	var stored []*app.Event
	view(t, s, func(tx app.Tx) error {
		for _, organization := range someOrganizations {
			all, known, err := tx.EventsAfter(organization, events.ID{}, 1<<20)
			if err != nil || !known {
				t.Fatalf("%q: %v, known: %v", organization, err, known)
			}
			for _, entry := range all {
				e, err := app.DecodeEvent(entry)
				must.OK(t, err)
				stored = append(stored, e)
			}
			if len(all) == 0 {
				continue
			}
			if end, err := tx.LastEvent(organization); err != nil || end != all[len(all)-1].ID {
				t.Errorf("the last event is %v, %v", end, err)
			}
		}
		return nil
	})
	of := func(all []*app.Event) (texts []string) {
		for _, e := range all {
			texts = append(texts, fmt.Sprint(e.ID, e.Kind, gist(e.Job), gist(e.Was), string(e.Data), e.Topics()))
		}
		slices.Sort(texts)
		return texts
	}
	want, got := of(told), of(stored)
	if len(want) != len(got) {
		t.Fatalf("%d events were told, %d are stored", len(want), len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("told\n%s, stored\n%s", want[i], got[i])
		}
	}
}

// TestOneEventPerBatchAndTransaction finishes all rows in one transaction.
func TestOneEventPerBatchAndTransaction(t *testing.T) {
	s := openNew(t)
	parent := testJob(1)
	parent.Counts = &app.Counts{Queued: 20}
	rows := testJobs(40)[20:]
	for _, row := range rows {
		row.Batch, row.Private.Batch = parent.Name, parent.ID
	}
	putJobs(t, s, append([]*app.Job{parent}, rows...)...)
	var start events.ID
	var told []string
	s.OnEvents(func(all []events.Entry) {
		for _, entry := range all {
			e := entry.Attached.(*app.Event)
			told = append(told, fmt.Sprint(e.Kind, " ", e.Job.Name))
			if e.Kind == app.EventJobChanged && e.Job.ID == parent.ID && !strings.Contains(string(e.Data), `"subjobCounts":{"QUEUED":0,"RUNNING":20,`) {
				t.Errorf("the batch: %s", e.Data)
			}
		}
	})
	update(t, s, func(tx app.Tx) error {
		for n, row := range rows {
			row.Status = app.Running
			must.OK(t, tx.PutJob(row))
			now := copyJob(parent)
			now.Counts.Queued, now.Counts.Running = 19-n, n+1
			must.OK(t, tx.PutJob(now))
		}
		return nil
	})
	if len(told) != 21 || told[20] != "job job-1" {
		t.Errorf("told %q, want 20 rows, then the batch", told)
	}
	told = nil
	update(t, s, func(tx app.Tx) error { // the batch comes first, as in a real deletion
		must.OK(t, tx.DeleteJob(parent.ID))
		for _, row := range rows {
			must.OK(t, tx.DeleteJob(row.ID))
		}
		return nil
	})
	must.Equal(t, "told", told, []string{"deleted job-1"})
	view(t, s, func(tx app.Tx) error {
		all, _, err := tx.EventsAfter("lab", start, 2)
		must.Equal(t, "events of those after the start", len(all), 2)
		return err
	})
}

// TestInternalChangesHaveNoEvents changes only state internal to the runner.
func TestInternalChangesHaveNoEvents(t *testing.T) {
	s := openNew(t)
	j := testJob(1)
	putJobs(t, s, j)
	s.OnEvents(func(all []events.Entry) { t.Errorf("told %s", all[0].Value) })
	j.Attempts, j.Private.Claimed, j.Private.Handle = 1, true, "x"
	putJobs(t, s, j)
	putJobs(t, s, j)
}

// TestLargeMetricsAreNotInEvents ensures that one job cannot fill the event ring.
func TestLargeMetricsAreNotInEvents(t *testing.T) {
	s := openNew(t)
	j := testJob(1)
	j.Settings = json.RawMessage(`{"text":"` + strings.Repeat("s", 1<<20) + `"}`)
	putJobs(t, s, j)
	j.Status = app.Failed
	j.Metrics = &app.Metrics{RunSeconds: 1, Results: json.RawMessage(`{"text":"` + strings.Repeat("r", 1<<20) + `"}`)}
	j.Failure = &app.Failure{Code: app.FailedExit, Message: "It failed.", LogTail: strings.Repeat("t", 1<<16)}
	putJobs(t, s, j)
	view(t, s, func(tx app.Tx) error {
		all, _, err := tx.EventsAfter("lab", events.ID{}, 10)
		for _, e := range all {
			if len(e.Value) > 1000 {
				t.Errorf("an event has %d bytes", len(e.Value))
			}
		}
		must.Equal(t, "events of submission, figures and failure", len(all), 3)
		return err
	})
}
