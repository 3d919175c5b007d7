package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/base/unit"
	"molrun/app/test/must"
)

func TestDamagedEventsAreNotRead(t *testing.T) {
	for _, text := range []string{"", "{", `{"kind":7,"data":{}}`, `{"kind":"job"}`, `{"kind":"job","data":7}`} {
		if e, err := app.DecodeEvent(events.Entry{Value: []byte(text)}); err == nil {
			t.Errorf("%q is read as %+v", text, e)
		}
	}
}

func TestFiguresOfABoundedSizeAreTold(t *testing.T) {
	const most = 32 << 10
	for size, told := range map[int]bool{2: true, most: true, most + 1: false} {
		figures := json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
		j := &app.Job{Status: app.Completed, Metrics: &app.Metrics{Results: figures}}
		all, _ := app.EventsOf(&app.Job{Status: app.Running}, app.EncodedJob{Job: j, SummaryJSON: []byte("{}")})
		if len(all) != 2 || all[0].Kind != app.EventMetrics || strings.Contains(string(all[0].Data), string(figures)) != told {
			t.Errorf("of %d bytes: %d events, the first has %d bytes", size, len(all), len(all[0].Data))
		}
	}
}

// A job that ends between two polls is recorded once, as COMPLETED. Clients still see it
// as RUNNING first.
func TestJobThatEndsAtOnceIsSeenRunning(t *testing.T) {
	second := func(n int64) unit.Time { return unit.At(time.Unix(n, 0)) }
	queued := app.Job{ID: "1", Name: "a", Status: app.Queued, StatusReason: "waiting", Private: app.Private{Claimed: true}}
	done := queued
	done.Private.Claimed = false
	done.Status, done.StartedAt, done.CompletedAt, done.StatusReason = app.Completed, second(1), second(2), ""
	failed := done
	failed.Status, failed.Failure = app.Failed, &app.Failure{Code: app.FailedExit}
	cancelled := failed
	cancelled.StartedAt = unit.Time{}
	row := done
	row.Private.Batch = "2"
	retried := queued
	retried.StartedAt = second(1)
	for name, tt := range map[string]struct {
		old, now app.Job
		want     string
	}{
		"completed":                 {queued, done, "QUEUED>RUNNING RUNNING>COMPLETED"},
		"failed":                    {queued, failed, "QUEUED>RUNNING RUNNING>FAILED"},
		"cancelled in the queue":    {queued, cancelled, "QUEUED>FAILED"},
		"job of a batch":            {queued, row, "QUEUED>COMPLETED"},
		"batch retried, then ended": {retried, failed, "QUEUED>FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := tt.now.Encoded()
			must.OK(t, err)
			all, _ := app.EventsOf(&tt.old, encoded)
			var got []string
			for _, e := range all {
				var data struct {
					Status, PreviousStatus app.Status
					CompletedAt            string
				}
				must.OK(t, json.Unmarshal(e.Data, &data))
				got = append(got, string(data.PreviousStatus+">"+data.Status))
				if e.Job.Status != data.Status || e.Was.Status != data.PreviousStatus {
					t.Errorf("selected as %s>%s, shown as %s", e.Was.Status, e.Job.Status, e.Data)
				}
				if claimed := !data.Status.Finished(); e.Job.Private.Claimed != claimed || !e.Was.Private.Claimed {
					t.Errorf("%s: claimed %v, before %v", data.Status, e.Job.Private.Claimed, e.Was.Private.Claimed)
				}
				if data.Status == app.Running && (data.CompletedAt != "" || e.Job.Failure != nil) {
					t.Errorf("a running job has an end: %s", e.Data)
				}
			}
			must.Equal(t, "events", strings.Join(got, " "), tt.want)
		})
	}
}
