// Package metrics exposes the state of the service to Prometheus, beside requests: jobs,
// queues, executors, disk, database, cluster, notices.
//
// What happens is counted where it happens, by the observers of Metrics, and since the
// start of the process. What there is, such as jobs by state, is read at a scrape, from
// sums that the store keeps anyway. Labels have few values: types are those of algorithms
// on offer, or "other"; nothing names a user, an organization, a job or a key.
package metrics

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
)

// Metrics counts what happens. Its observers are quick and may be called at any time.
type Metrics struct {
	Registry *prometheus.Registry // with what is counted here, and room for more

	types, begun   limited // on offer; those of which there are series
	codes, reasons limited // of failures; why links were refused
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
	workBytes          atomic.Int64 // of running jobs
}

// Buckets of times, in seconds.
var (
	waitBuckets   = []float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}
	commitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	callBuckets   = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000}
	slurmBuckets  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	ratioBuckets  = []float64{.1, .25, .5, .8, .9, 1.1, 1.25, 2, 4, 10}
)

// LinkRevoked is why a link was refused that was revoked. Clients get LINK_INVALID.
const LinkRevoked fault.Code = "LINK_REVOKED"

// maxLabels bounds the values of a label that algorithms or rules may add to, beside
// "other".
const maxLabels = 100

// New returns the metrics of a process.
func New(version string) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), types: limited{most: maxLabels}, codes: limited{most: maxLabels, any: true}, reasons: limited{most: maxLabels, any: true}, begun: limited{most: 3 * (maxLabels + 1)}}
	m.attempts = m.counter("molrun_job_attempts_total", "Attempts at jobs that have ended, by type of job, executor and result: completed, failed, stopped or lost.", "type", "executor", "result")
	m.failures = m.counter("molrun_job_failures_total", "Jobs that became FAILED, by type and code of the failure.", "type", "code")
	m.queued = m.histogram("molrun_job_queue_seconds", "Time in seconds that jobs waited from their submission or retry to their start, by type.", waitBuckets, "type")
	m.ran = m.histogram("molrun_job_run_seconds", "Time in seconds that attempts ran that completed or failed, by type of job.", waitBuckets, "type")
	m.ratio = m.histogram("molrun_estimate_ratio", "Actual time divided by the time that was estimated: of=run when a job completes, of=queue when it starts. 1 is exact, 2 took twice as long.", ratioBuckets, "of")
	m.commits = m.histogram("molrun_database_commit_seconds", "Time in seconds that commits of the database took until they were on the disk.", commitBuckets).WithLabelValues().(prometheus.Histogram)
	m.calls = m.histogram("molrun_database_commit_changes", "Changes that shared a commit of the database.", callBuckets).WithLabelValues().(prometheus.Histogram)
	m.commitFailures = m.counter("molrun_database_commit_failures_total", "Commits of the database that failed, as on a full disk.").WithLabelValues()
	m.links = m.counter("molrun_link_refusals_total", "Requests with signed links that got an error, by reason: the error's code, or LINK_REVOKED.", "reason")
	m.slurm = m.histogram("molrun_slurm_command_seconds", "Time in seconds that commands of Slurm took, by command, failed ones too.", slurmBuckets, "command")
	m.slurmFailures = m.counter("molrun_slurm_command_failures_total", "Commands of Slurm that failed or did not answer in time, by command.", "command")
	m.unread = m.counter("molrun_metrics_failures_total", "Scrapes that lack something because it could not be read, by part.", "part")
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

// Offer says where to ask which types of jobs are on offer, before anything happens. Jobs of
// others count as "other". A type that is on offer no more keeps its name.
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

// Refused counts a request with a link that got an error.
func (m *Metrics) Refused(reason string) { m.links.WithLabelValues(m.reasons.of(reason)).Inc() }

// RanCommand counts a command of Slurm.
func (m *Metrics) RanCommand(command string, took time.Duration, err error) {
	m.slurm.WithLabelValues(command).Observe(took.Seconds())
	failures := m.slurmFailures.WithLabelValues(command) // 0 is shown too
	if err != nil {
		failures.Inc()
	}
}

// Load notes what jobs use of an executor.
func (m *Metrics) Load(executor string, jobs int, used placement.Resources) {
	m.load.set(executor, load{jobs, used})
}
