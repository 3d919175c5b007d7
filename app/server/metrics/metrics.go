// Package metrics exposes the state of the service to Prometheus, apart from requests:
// jobs, queues, executors, disk, database, cluster, notifications.
//
// Events are counted since the start of the process, where they happen, by the observers
// of Metrics. Current state, such as jobs by status, is read at a scrape, from sums that
// the store maintains anyway. Labels have few values: types are those of algorithms on
// offer, or "other"; no label identifies a user, an organization, a job or a key.
package metrics

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
)

// Metrics counts events. Its observers are fast and can be called at any time.
type Metrics struct {
	Registry *prometheus.Registry // with the metrics of this package; others can be added

	types, begun   limited // types on offer; types with existing series
	codes, reasons limited // failure codes; reasons for rejecting links
	estimates      estimates
	load           loads

	attempts, failures *prometheus.CounterVec
	queued, ran, ratio *prometheus.HistogramVec
	commits, calls     prometheus.Histogram
	commitFailures     prometheus.Counter
	links              *prometheus.CounterVec
	slurm              *prometheus.HistogramVec
	slurmFailures      *prometheus.CounterVec
	unread             *prometheus.CounterVec
	workBytes          atomic.Int64 // total size of the directories of running jobs
}

// Histogram buckets of times in seconds, numbers of calls and ratios.
var (
	waitBuckets   = []float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}
	commitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	callBuckets   = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000}
	slurmBuckets  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	ratioBuckets  = []float64{.1, .25, .5, .8, .9, 1.1, 1.25, 2, 4, 10}
)

// LinkRevoked is the reason for rejecting a revoked link. Clients get LINK_INVALID.
const LinkRevoked fault.Code = "LINK_REVOKED"

// maxLabels limits the number of label values that algorithms or rules can add, not
// counting "other".
const maxLabels = 100

// New returns the metrics of a process.
func New(version string) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), types: limited{most: maxLabels}, codes: limited{most: maxLabels, any: true}, reasons: limited{most: maxLabels, any: true}, begun: limited{most: 3 * (maxLabels + 1)}}
	m.attempts = m.counter("molrun_job_attempts_total", "Finished job attempts, by job type, executor and result: completed, failed, stopped or lost.", "type", "executor", "result")
	m.failures = m.counter("molrun_job_failures_total", "Failed jobs, by type and error code.", "type", "code")
	m.queued = m.histogram("molrun_job_queue_seconds", "Time in seconds that jobs waited from their submission or retry to their start, by type.", waitBuckets, "type")
	m.ran = m.histogram("molrun_job_run_seconds", "Run time in seconds of completed and failed attempts, by job type.", waitBuckets, "type")
	m.ratio = m.histogram("molrun_estimate_ratio", "Actual time divided by the estimated time: of=run when a job completes, of=queue when it starts. 1 is exact, 2 took twice as long.", ratioBuckets, "of")
	m.commits = m.histogram("molrun_database_commit_seconds", "Duration in seconds of database commits, including the sync to disk.", commitBuckets).WithLabelValues().(prometheus.Histogram)
	m.calls = m.histogram("molrun_database_commit_changes", "Number of changes per database commit.", callBuckets).WithLabelValues().(prometheus.Histogram)
	m.commitFailures = m.counter("molrun_database_commit_failures_total", "Failed database commits, such as on a full disk.").WithLabelValues()
	m.links = m.counter("molrun_link_refusals_total", "Requests with signed links that got an error, by reason: the error's code, or LINK_REVOKED.", "reason")
	m.slurm = m.histogram("molrun_slurm_command_seconds", "Duration in seconds of Slurm commands, including failed ones, by command.", slurmBuckets, "command")
	m.slurmFailures = m.counter("molrun_slurm_command_failures_total", "Slurm commands that failed or timed out, by command.", "command")
	m.unread = m.counter("molrun_metrics_failures_total", "Scrapes that are incomplete because a part could not be read, by part.", "part")
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "molrun_build_info", Help: "Always 1; the labels are the versions of molrun and of the Go that built it.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	build.Set(1)
	m.Registry.MustRegister(build)
	for _, reason := range []fault.Code{fault.LinkInvalid, fault.LinkExpired, LinkRevoked} {
		m.links.WithLabelValues(m.reasons.of(string(reason)))
	}
	for _, of := range []string{ofRun, ofQueue} {
		m.ratio.WithLabelValues(of)
	}
	return m
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.Registry.MustRegister(c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.Registry.MustRegister(h)
	return h
}

// Offer sets the function that returns the job types on offer. It must be called before
// anything is counted. Jobs of other types count as "other". A type no longer on offer
// keeps its label.
func (m *Metrics) Offer(types func() []string) { m.types.offered = types }

// Committed counts a commit of the database.
func (m *Metrics) Committed(calls int, took time.Duration, err error) {
	if err != nil {
		m.commitFailures.Inc()
		return
	}
	m.commits.Observe(took.Seconds())
	m.calls.Observe(float64(calls))
}

// Refused counts a failed request with a link.
func (m *Metrics) Refused(reason string) { m.links.WithLabelValues(m.reasons.of(reason)).Inc() }

// RanCommand counts a Slurm command.
func (m *Metrics) RanCommand(command string, took time.Duration, err error) {
	m.slurm.WithLabelValues(command).Observe(took.Seconds())
	failures := m.slurmFailures.WithLabelValues(command) // also creates the series at 0
	if err != nil {
		failures.Inc()
	}
}

// Load records the jobs on an executor and the resources they use.
func (m *Metrics) Load(executor string, jobs int, used placement.Resources) {
	m.load.set(executor, load{jobs, used})
}
