package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/base/unit"
	"molrun/app/job/eta"
	"molrun/app/server/metrics"
	"molrun/app/test/must"
	"molrun/storage"
	"molrun/storage/kv"
)

// values returns the values of a scrape, by series.
func values(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("the scrape fails: %s", w.Body)
	}
	all := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(line)
		at := strings.LastIndex(line, " ") // there are no timestamps
		v, err := strconv.ParseFloat(line[at+1:], 64)
		must.OK(t, err)
		all[line[:at]] = v
	}
	return all
}

func wants(t *testing.T, m *metrics.Metrics, want map[string]float64) {
	t.Helper()
	got := values(t, m)
	for series, v := range want {
		if have, known := got[series]; have != v || !known {
			t.Errorf("%s is %v (%v), want %v", series, have, known, v)
		}
	}
}

func offered(types ...string) func() []string { return func() []string { return types } }

// change returns an event of a job.
func change(was, now *app.Job) []events.Entry {
	return []events.Entry{{Attached: &app.Event{Kind: app.EventJobChanged, Was: was, Job: now}}}
}

// job returns a job of a type with a status.
func job(typ string, status app.Status, more func(*app.Job)) *app.Job {
	j := &app.Job{ID: app.JobID(typ), Type: typ, Executor: "local", Status: status}
	if more != nil {
		more(j)
	}
	return j
}

func claimed(j *app.Job) { j.Private.Claimed = true }

func failedWith(code app.FailureCode) func(*app.Job) {
	return func(j *app.Job) { j.Failure = &app.Failure{Code: code} }
}

func TestAttemptResultsAreCounted(t *testing.T) {
	m := metrics.New("v1")
	m.Offer(offered("dock"))
	running := job("dock", app.Running, claimed)
	m.CountEvents(change(nil, job("dock", app.Queued, nil)))
	m.CountEvents(change(running, job("dock", app.Completed, nil)))
	m.CountEvents(change(running, job("dock", app.Failed, failedWith(app.FailedExit))))
	m.CountEvents(change(running, job("dock", app.Failed, failedWith(app.FailedStopped))))
	m.CountEvents(change(running, job("dock", app.Failed, failedWith(app.FailedLost))))
	m.CountEvents(change(running, job("dock", app.Queued, nil)))                                                                    // lost, to be retried
	m.CountEvents(change(running, job("dock", app.Queued, func(j *app.Job) { j.PastAttempts = make([]app.PastAttempt, 1) })))       // out of memory, to be retried with more
	m.CountEvents(change(running, job("dock", app.Running, claimed)))                                                               // a change that ends no attempt
	m.CountEvents(change(job("dock", app.Queued, claimed), job("dock", app.Failed, failedWith(app.FailedCannotStart))))             // claimed, never ran
	m.CountEvents(change(job("dock", app.Queued, nil), job("dock", app.Failed, failedWith(app.FailedDependency))))                  // there was no attempt
	m.CountEvents(change(job("dock", app.Failed, failedWith(app.FailedExit)), job("dock", app.Failed, failedWith(app.FailedExit)))) // as when it is pinned
	m.CountEvents(change(running, job("dock", app.Completed, func(j *app.Job) { j.Counts = &app.Counts{} })))                       // a batch
	m.CountEvents([]events.Entry{{Attached: &app.Event{Kind: app.EventMetrics, Job: job("dock", app.Completed, nil)}}, {}})         // no change
	const attempts, failures = `molrun_job_attempts_total{executor="local",result="%s",type="dock"}`, `molrun_job_failures_total{code="%s",type="dock"}`
	wants(t, m, map[string]float64{
		fmt.Sprintf(attempts, "completed"): 1, fmt.Sprintf(attempts, "failed"): 3, fmt.Sprintf(attempts, "stopped"): 1, fmt.Sprintf(attempts, "lost"): 2,
		fmt.Sprintf(failures, "EXIT_STATUS"): 1, fmt.Sprintf(failures, "STOPPED"): 1, fmt.Sprintf(failures, "LOST"): 1,
		fmt.Sprintf(failures, "CANNOT_START"): 1, fmt.Sprintf(failures, "DEPENDENCY_FAILED"): 1, fmt.Sprintf(failures, "TIMEOUT"): 0,
	})
}

func TestTimesOfJobsAreTold(t *testing.T) {
	m := metrics.New("v1")
	m.Offer(offered("dock"))
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	queued := job("dock", app.Queued, func(j *app.Job) { j.Private.QueuedAt = unit.At(begin) })
	running, ended := *queued, *queued
	running.Status, running.StartedAt = app.Running, unit.At(begin.Add(30*time.Second))
	ended.Status, ended.StartedAt, ended.CompletedAt = app.Completed, running.StartedAt, unit.At(begin.Add(150*time.Second))
	m.CountEvents(change(queued, &running))
	m.CountEvents(change(&running, &ended))
	m.CountEvents(change(&ended, &ended)) // as when it is pinned
	again := running
	again.Private.Lost, again.StartedAt = 1, unit.At(begin.Add(time.Hour)) // the wait includes a run
	m.CountEvents(change(queued, &again))
	again.Private.Lost, again.PastAttempts = 0, make([]app.PastAttempt, 1) // so does this one
	m.CountEvents(change(queued, &again))
	m.CountEvents(change(queued, &ended)) // too short for an event about its start
	wants(t, m, map[string]float64{
		`molrun_job_queue_seconds_count{type="dock"}`: 2, `molrun_job_queue_seconds_sum{type="dock"}`: 60,
		`molrun_job_queue_seconds_bucket{type="dock",le="10"}`: 0, `molrun_job_queue_seconds_bucket{type="dock",le="60"}`: 2,
		`molrun_job_run_seconds_count{type="dock"}`: 2, `molrun_job_run_seconds_sum{type="dock"}`: 240,
	})
}

func TestLabelsHaveFewValues(t *testing.T) {
	m := metrics.New("v1")
	var types []string
	for i := range 500 {
		types = append(types, fmt.Sprint("type-", i))
	}
	m.Offer(offered(types...))
	for i := range 1000 {
		typ := fmt.Sprint("type-", i)
		m.CountEvents(change(job(typ, app.Running, claimed), job(typ, app.Failed, func(j *app.Job) {
			j.Executor, j.Failure = fmt.Sprint("executor-", i), &app.Failure{Code: app.FailureCode(fmt.Sprint("CODE_", i))}
		})))
		m.Refused(fmt.Sprint("REASON_", i))
	}
	of := map[string]map[string]bool{}
	for series := range values(t, m) {
		_, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		for label := range strings.SplitSeq(labels, ",") {
			name, value, _ := strings.Cut(label, "=")
			if of[name] == nil {
				of[name] = map[string]bool{}
			}
			of[name][value] = true
		}
	}
	for _, name := range []string{"type", "code", "reason"} {
		if n := len(of[name]); n > 101 || !of[name][`"other"`] {
			t.Errorf("%s has %d values", name, n)
		}
	}
	if n := len(of["executor"]); n != 1 || !of["executor"][`"other"`] {
		t.Errorf("executors are %v", of["executor"])
	}
	wants(t, m, map[string]float64{`molrun_job_attempts_total{executor="other",result="failed",type="type-7"}`: 1})
}

func TestTypesMayBeAdded(t *testing.T) {
	m, types := metrics.New("v1"), []string{"dock"}
	m.Offer(func() []string { return types })
	end := func() { m.CountEvents(change(job("fold", app.Running, claimed), job("fold", app.Completed, nil))) }
	end()
	types = []string{"fold"}
	end()
	end()
	wants(t, m, map[string]float64{
		`molrun_job_attempts_total{executor="local",result="completed",type="other"}`: 1,
		`molrun_job_attempts_total{executor="local",result="completed",type="fold"}`:  2,
	})
}

func TestCommandsAndCommitsAreTold(t *testing.T) {
	m := metrics.New("v1")
	m.RanCommand("sbatch", time.Second, nil)
	m.RanCommand("sbatch", 3*time.Second, errors.New("refused"))
	m.RanCommand("squeue", time.Second, nil)
	m.Committed(3, time.Second/4, nil)
	m.Committed(9, time.Second, errors.New("full"))
	m.Refused("LINK_EXPIRED")
	wants(t, m, map[string]float64{
		`molrun_slurm_command_seconds_count{command="sbatch"}`: 2, `molrun_slurm_command_seconds_sum{command="sbatch"}`: 4,
		`molrun_slurm_command_failures_total{command="sbatch"}`: 1, `molrun_slurm_command_failures_total{command="squeue"}`: 0,
		"molrun_database_commit_seconds_count": 1, "molrun_database_commit_seconds_sum": .25, "molrun_database_commit_changes_sum": 3,
		"molrun_database_commit_failures_total": 1, `molrun_link_refusals_total{reason="LINK_EXPIRED"}`: 1, `molrun_link_refusals_total{reason="LINK_INVALID"}`: 0,
	})
}

// foresight forecasts when jobs end and start.
type foresight struct {
	left, start float64
	basis       string
}

func (f foresight) RemainingTime(app.JobID) (float64, string, bool) { return f.left, f.basis, true }
func (f foresight) QueueForecast(string) app.QueueForecast          { return outlook{start: f.start} }

type outlook struct {
	app.QueueForecast
	start float64
}

func (o outlook) Queue(app.JobID, time.Time) (eta.Queue, eta.Reason, bool) {
	return eta.Queue{ETASeconds: int64(o.start)}, eta.Reason{}, true
}

// TestEstimateRatios starts a job after 20 s that runs for 40 s.
func TestEstimateRatios(t *testing.T) {
	for name, tt := range map[string]struct {
		foresight
		queue, run float64 // ratios; 0 means none
	}{
		"exact":       {foresight{40, 20, "7 runs"}, 1, 1},
		"too short":   {foresight{20, 10, "7 runs"}, 2, 2},
		"unknown":     {foresight{0, 0, ""}, 0, 0},
		"by progress": {foresight{40, 20, eta.ByProgress}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := metrics.New("v1")
				ctx, cancel := context.WithCancel(t.Context())
				go m.Estimate(ctx, tt.foresight)
				now := job("dock", app.Queued, nil)
				step := func(status app.Status) {
					was := *now
					now.Status = status
					m.CountEvents(change(&was, now))
				}
				m.CountEvents(change(nil, now))
				time.Sleep(20 * time.Second)
				now.StartedAt = unit.At(time.Now())
				step(app.Running)
				time.Sleep(40 * time.Second)
				now.CompletedAt = unit.At(time.Now())
				step(app.Completed)
				got := values(t, m)
				for of, want := range map[string]float64{"queue": tt.queue, "run": tt.run} {
					ratio, count := got[`molrun_estimate_ratio_sum{of="`+of+`"}`], got[`molrun_estimate_ratio_count{of="`+of+`"}`]
					if known := want > 0; count > 0 != known || ratio < .9*want || ratio > 1.1*want {
						t.Errorf("%s: ratio %v of %v jobs, want %v", of, ratio, count, want)
					}
				}
				cancel()
			})
		})
	}
}

// broken is a database that fails while err is set.
type broken struct {
	err   error
	reads int
}

func (b *broken) Totals(context.Context) (storage.Totals, error) {
	b.reads++
	return storage.Totals{}, b.err
}
func (b *broken) Size(context.Context) (kv.Size, error) { return kv.Size{Bytes: 4096}, nil }

func TestScrapeOmitsUnreadableParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, db, warned := metrics.New("v1"), &broken{err: errors.New("no")}, 0
		var taken time.Time
		slurm := errors.New("away")
		zero := func() int { return 0 }
		m.Watch(metrics.Sources{
			Store: db, Disk: func() (app.Disk, error) { return app.Disk{}, db.err }, AuditLost: func() int { return 3 }, Listeners: zero, Computing: zero,
			Slurm:   func() (time.Time, error) { return time.Now(), slurm },
			Backups: func() metrics.Backups { return metrics.Backups{Taken: taken} },
			Warn:    func(string, error) { warned++ },
		})
		_ = values(t, m)
		got := values(t, m)
		if _, known := got["molrun_drained"]; known || warned != 4 || got[`molrun_metrics_failures_total{part="disk"}`] == 0 || got[`molrun_metrics_failures_total{part="database"}`] == 0 {
			t.Errorf("warned %d times; scraped %v", warned, got)
		}
		must.Equal(t, "two scrapes at once read the database", db.reads, 1)
		if _, known := got["molrun_backup_last_success_timestamp_seconds"]; known || got["molrun_slurm_up"] != 0 || got["molrun_audit_entries_lost_total"] != 3 {
			t.Errorf("scraped %v", got)
		}
		db.err, slurm, taken = nil, nil, time.Unix(1000, 0)
		time.Sleep(2 * time.Second)
		wants(t, m, map[string]float64{"molrun_drained": 0, "molrun_database_size_bytes": 4096, "molrun_slurm_up": 1, "molrun_backup_last_success_timestamp_seconds": 1000})
	})
}

// machine is an executor that only has a capacity.
type machine struct{ app.Executor }

func (machine) Name() string { return "local" }

func (machine) Capacity() (app.Capacity, bool) {
	return app.Capacity{CPUs: 4, GPUs: []string{"GPU-a", "GPU-c"}, FaultyGPUs: []app.FaultyGPU{{Name: "GPU-b", Fault: app.GPULost}}}, true
}

func TestFaultyGPUsAreNamed(t *testing.T) {
	t.Parallel()
	m, zero := metrics.New("v1"), func() int { return 0 }
	m.Watch(metrics.Sources{
		Store: &broken{}, Disk: func() (app.Disk, error) { return app.Disk{}, nil }, AuditLost: zero, Listeners: zero, Computing: zero,
		Executors: []app.Executor{machine{}}, Warn: func(string, error) {},
	})
	wants(t, m, map[string]float64{
		`molrun_executor_gpus{executor="local",use="free"}`:            2,
		`molrun_executor_gpus{executor="local",use="faulty"}`:          1,
		`molrun_gpu_faulty{executor="local",fault="lost",gpu="GPU-b"}`: 1,
	})
}
