package metrics

import (
	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/events"
)

// CountEvents counts job events. The entries are those of one commit, each with its event
// attached.
func (m *Metrics) CountEvents(all []events.Entry) {
	for _, entry := range all {
		e, ok := entry.Attached.(*app.Event)
		switch {
		case !ok || e.Job.IsBatch(): // a batch's rows are counted instead
		case e.Kind == app.EventJobDeleted:
			m.estimates.forget(e.Job.ID)
		case e.Kind == app.EventJobChanged:
			m.changed(e.Was, e.Job)
		}
	}
}

// changed counts a change of a job; was is nil if it is new.
func (m *Metrics) changed(was, now *app.Job) {
	if was == nil {
		was = &app.Job{}
	}
	typ := m.types.of(now.Type)
	m.startSeries(typ, executorOf(now.Executor))
	if was.StartedAt.IsZero() && !now.StartedAt.IsZero() && now.Private.Lost == 0 && len(now.PastAttempts) == 0 {
		m.queued.WithLabelValues(typ).Observe(max(0, now.StartedAt.Sub(now.Private.QueuedAt.Time).Seconds()))
	}
	if was.Private.Claimed && !now.Private.Claimed {
		m.attempts.WithLabelValues(typ, executorOf(now.Executor), resultOf(was, now)).Inc()
	}
	if now.Status.Finished() && !was.Status.Finished() && !now.StartedAt.IsZero() {
		m.ran.WithLabelValues(typ).Observe(max(0, now.CompletedAt.Sub(now.StartedAt.Time).Seconds()))
	}
	if now.Status == app.Failed && was.Status != app.Failed && now.Failure != nil {
		m.failures.WithLabelValues(typ, m.codes.of(string(now.Failure.Code))).Inc()
	}
	for ratio, of := range m.estimates.follow(was, now) {
		m.ratio.WithLabelValues(of).Observe(ratio)
	}
}

// startSeries creates the series of a job type at 0, because only an increase from 0 is
// visible to Prometheus.
func (m *Metrics) startSeries(typ, executor string) {
	if !m.begun.add(typ + " " + executor) {
		return
	}
	for _, result := range results {
		m.attempts.WithLabelValues(typ, executor, result)
	}
	for _, code := range failureCodes {
		m.failures.WithLabelValues(typ, m.codes.of(string(code)))
	}
}

// Results of attempts.
const (
	completed = "completed"
	failed    = "failed"
	stopped   = "stopped"
	lost      = "lost"
)

var results = []string{completed, failed, stopped, lost}

var failureCodes = []app.FailureCode{
	app.FailedExit, app.FailedSignal, app.FailedTimeout, app.FailedMemory, app.FailedStopped, app.FailedInput,
	app.FailedCannotStart, app.FailedLost, app.FailedDependency, app.FailedNoResult, app.FailedInvalid,
}

// resultOf returns how an attempt ended, given the job before and after the change.
func resultOf(was, j *app.Job) string {
	switch {
	case j.Status == app.Completed:
		return completed
	case len(j.PastAttempts) > len(was.PastAttempts):
		return failed
	case j.Status == app.Queued || j.Failure == nil || j.Failure.Code == app.FailedLost:
		return lost
	case j.Failure.Code == app.FailedStopped:
		return stopped
	}
	return failed
}

// executorOf returns the label of a job's executor. Executors that only an earlier
// configuration had count as other.
func executorOf(name string) string {
	if name == placement.Local || name == placement.Slurm {
		return name
	}
	return other
}
